// SPDX-License-Identifier: Apache-2.0
//
// A program that uses CUDA twice and prints whether it had been injected before its first call
// returned. Built with the shared runtime and with the static one.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

namespace {
bool injected() {
  const char* path = std::getenv("GPUDIAG_INJECTED");
  std::FILE* file = path != nullptr ? std::fopen(path, "r") : nullptr;
  if (file != nullptr) std::fclose(file);
  return file != nullptr;
}
}  // namespace

int main() {
  const bool before = injected();
  if (cudaFree(nullptr) != cudaSuccess) return 2;
  const bool after = injected();
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  std::printf("before %d after %d\n", before, after);
  return 0;
}
