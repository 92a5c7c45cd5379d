// SPDX-License-Identifier: Apache-2.0
//
// A program with a callback for its iterations that does what none should. Prints how it went.
#include <gpudiag/gpudiag.hpp>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace {

__global__ void work(float* values) { values[threadIdx.x] += 1.0f; }

std::atomic<int> calls{0};

void throws(const gpudiag_iteration*, void*) {
  ++calls;
  throw std::runtime_error("as it likes");
}

void throws_a_number(const gpudiag_iteration*, void*) {
  ++calls;
  throw 7;
}

void starts_and_stops(const gpudiag_iteration*, void*) {
  ++calls;
  gpudiag_stop();
  gpudiag_start(nullptr);
}

void train(int iterations) {
  float* values = nullptr;
  if (cudaMalloc(&values, 4096) != cudaSuccess) return;
  for (int i = 0; i < iterations; ++i) {
    work<<<1, 32>>>(values);
    cudaDeviceSynchronize();
    gpudiag::step();
  }
  cudaFree(values);
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  cudaFree(nullptr);
  gpudiag::Session session;
  if (std::strcmp(mode, "throws") == 0) gpudiag::on_iteration(throws);
  if (std::strcmp(mode, "throws_a_number") == 0) gpudiag::on_iteration(throws_a_number);
  if (std::strcmp(mode, "starts_and_stops") == 0) gpudiag::on_iteration(starts_and_stops);
  train(50);
  gpudiag::stop();
  std::printf("called %s, failed %llu, active %d\n", calls > 1 ? "often" : calls == 1 ? "once" : "never",
              static_cast<unsigned long long>(gpudiag::failed_callbacks()), session.active() ? 1 : 0);
  return 5;
}
