// SPDX-License-Identifier: Apache-2.0
//
// Kernel launches, host functions, and what can be asked about a kernel.
#include "runtime/entry.hpp"

#include <algorithm>
#include <cstring>

namespace {

constexpr int kMaxThreadsPerSm = 2048;
constexpr int kMaxBlocksPerSm = 32;
constexpr std::size_t kSharedPerSm = 228 * 1024;
constexpr std::size_t kSharedReserved = 1024;

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t stream, bool cooperative,
                   Dimensions cluster = {0, 0, 0}) {
  KernelWork work;
  work.kernel = find_kernel(function);
  if (work.kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  work.grid = dimensions(grid);
  work.block = dimensions(block);
  work.cluster = cluster;
  work.shared_bytes = static_cast<std::uint32_t>(shared_bytes);
  work.cooperative = cooperative;
  work.arguments = arguments;
  if (const int error = prepare_kernel(work)) return as_error(error);
  return with_stream(stream, [&](Stream& s) { return submit(s, work); });
}

int blocks_per_sm(int block_size, std::size_t dynamic_bytes) {
  if (block_size <= 0 || block_size > 1024) return 0;
  const auto by_shared = static_cast<int>(kSharedPerSm / (dynamic_bytes + kSharedReserved));
  return std::min({kMaxThreadsPerSm / block_size, kMaxBlocksPerSm, by_shared});
}

}  // namespace

SIMGPU_RUNTIME(cudaLaunchKernel) {
  return launch(p.func, p.gridDim, p.blockDim, p.args, p.sharedMem, p.stream, false);
}

SIMGPU_RUNTIME(cudaLaunchCooperativeKernel) {
  return launch(p.func, p.gridDim, p.blockDim, p.args, p.sharedMem, p.stream, true);
}

SIMGPU_RUNTIME(cudaLaunchKernelExC) {
  if (p.config == nullptr) return cudaErrorInvalidConfiguration;
  bool cooperative = false;
  Dimensions cluster{0, 0, 0};
  for (unsigned i = 0; i < p.config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = p.config->attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative)
      cooperative = attribute.val.cooperative != 0;
    if (attribute.id == cudaLaunchAttributeClusterDimension) {
      cluster = {attribute.val.clusterDim.x, attribute.val.clusterDim.y,
                 attribute.val.clusterDim.z};
    }
  }
  return launch(p.func, p.config->gridDim, p.config->blockDim, p.args, p.config->dynamicSmemBytes,
                p.config->stream, cooperative, cluster);
}

SIMGPU_RUNTIME(cudaLaunchHostFunc) {
  if (p.fn == nullptr) return cudaErrorInvalidValue;
  return with_stream(p.stream, [&](Stream& s) {
    return submit(s, HostWork{p.fn, nullptr, p.userData});
  });
}

SIMGPU_RUNTIME(cudaStreamAddCallback) {
  if (p.callback == nullptr || p.flags != 0) return cudaErrorInvalidValue;
  return with_stream(p.stream, [&](Stream& s) {
    // Streams are the handles, and the status is a cudaError_t: only the types' names differ.
    const auto callback = reinterpret_cast<StreamCallback>(reinterpret_cast<void*>(p.callback));
    return submit(s, HostWork{nullptr, callback, p.userData});
  });
}

SIMGPU_RUNTIME(cudaFuncGetAttributes) {
  const Kernel* kernel = find_kernel(p.func);
  if (p.attr == nullptr) return cudaErrorInvalidValue;
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  std::memset(p.attr, 0, sizeof *p.attr);
  p.attr->maxThreadsPerBlock = 1024;
  p.attr->numRegs = 32;
  p.attr->ptxVersion = 90;
  p.attr->binaryVersion = 90;
  p.attr->maxDynamicSharedSizeBytes = kernel->max_dynamic_shared_bytes;
  p.attr->preferredShmemCarveout = kernel->preferred_carveout;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaFuncSetAttribute) {
  Kernel* kernel = find_kernel(p.func);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  if (p.attr == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (p.value < 0 || p.value > 227 * 1024) return cudaErrorInvalidValue;
    kernel->max_dynamic_shared_bytes = p.value;
  } else if (p.attr == cudaFuncAttributePreferredSharedMemoryCarveout) {
    kernel->preferred_carveout = p.value;
  }
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaFuncSetCacheConfig) {
  return find_kernel(p.func) == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
}

SIMGPU_RUNTIME(cudaFuncGetName) {
  const Kernel* kernel = find_kernel(p.func);
  if (p.name == nullptr) return cudaErrorInvalidValue;
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  *p.name = kernel->name.c_str();
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGetFuncBySymbol) {
  Kernel* kernel = find_kernel(p.symbolPtr);
  if (p.functionPtr == nullptr) return cudaErrorInvalidValue;
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  *p.functionPtr = reinterpret_cast<cudaFunction_t>(kernel);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGetKernel) {
  Kernel* kernel = find_kernel(p.entryFuncAddr);
  if (p.kernelPtr == nullptr) return cudaErrorInvalidValue;
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  *p.kernelPtr = reinterpret_cast<cudaKernel_t>(kernel);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor) {
  if (p.numBlocks == nullptr) return cudaErrorInvalidValue;
  if (find_kernel(p.func) == nullptr) return cudaErrorInvalidDeviceFunction;
  *p.numBlocks = blocks_per_sm(p.blockSize, p.dynamicSMemSize);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) {
  if (p.numBlocks == nullptr) return cudaErrorInvalidValue;
  if (find_kernel(p.func) == nullptr) return cudaErrorInvalidDeviceFunction;
  *p.numBlocks = blocks_per_sm(p.blockSize, p.dynamicSMemSize);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaOccupancyAvailableDynamicSMemPerBlock) {
  if (p.dynamicSmemSize == nullptr || p.numBlocks <= 0) return cudaErrorInvalidValue;
  if (find_kernel(p.func) == nullptr) return cudaErrorInvalidDeviceFunction;
  *p.dynamicSmemSize = kSharedPerSm / static_cast<std::size_t>(p.numBlocks) - kSharedReserved;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaOccupancyMaxPotentialClusterSize) {
  if (p.clusterSize == nullptr) return cudaErrorInvalidValue;
  if (find_kernel(p.func) == nullptr) return cudaErrorInvalidDeviceFunction;
  *p.clusterSize = 8;
  return cudaSuccess;
}
