// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

namespace {

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(unsigned long long ns) {
  const unsigned long long begin = nanoseconds();
  while (nanoseconds() - begin < ns) {
  }
}

}  // namespace

namespace gpudiag::device {

cudaError_t launch_spin(cudaStream_t stream, std::uint64_t ns) {
  // Not <<<>>>, whose error is the thread's last one: "not ready" of an earlier query may still be there.
  unsigned long long duration = ns;
  void* arguments[] = {&duration};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&spin), dim3{1}, dim3{1}, arguments, 0, stream);
}

}  // namespace gpudiag::device
