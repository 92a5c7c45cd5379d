// SPDX-License-Identifier: Apache-2.0
//
// Sessions started and stopped a thousand times while eight threads launch, and calls of the API from
// all of them, before, during and after.
#include <gpudiag/gpudiag.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

__global__ void work(int* value) { *value += 1; }

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
  int* value = nullptr;
  if (cudaMalloc(&value, sizeof *value) != cudaSuccess) return 2;
  std::atomic<bool> stop{false};
  std::atomic<int> steps{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      cudaStream_t stream{};
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      while (!stop) {
        const gpudiag::Range range{"batch", gpudiag::Cause::kDataLoading};
        work<<<1, 1, 0, stream>>>(value);
        cudaStreamSynchronize(stream);
        if (t != 0) continue;
        gpudiag::step();
        ++steps;
      }
    });
  while (steps < 20) std::this_thread::yield();
  int started = 0;
  for (int i = 0; i < rounds; ++i) {
    const gpudiag::Session session;
    if (session.status() == GPUDIAG_OK && session.active()) ++started;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  gpudiag::step();
  gpudiag_stop();  // none of ours is left: an injected one runs on
  gpudiag_stop();
  std::printf("started %d of %d, active %d\n", started, rounds, gpudiag_active());
  return started == rounds ? 0 : 1;
}
