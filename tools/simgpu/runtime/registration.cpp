// SPDX-License-Identifier: Apache-2.0
//
// What nvcc's start-up code and launch stubs call. None of it initialises the driver.
#include <cupti_runtime_cbid.h>

#include <cstdio>

#include "runtime/entry.hpp"

extern "C" {

SIMGPU_EXPORT void** __cudaRegisterFatBinary(void* image);
SIMGPU_EXPORT void __cudaRegisterFatBinaryEnd(void** handle);
SIMGPU_EXPORT void __cudaUnregisterFatBinary(void** handle);
SIMGPU_EXPORT void __cudaRegisterFunction(void** handle, const char* host_function, char* name,
                                          const char* device_name, int thread_limit, uint3* tid,
                                          uint3* bid, dim3* block, dim3* grid, int* warp_size);
SIMGPU_EXPORT void __cudaRegisterVar(void** handle, char* host_variable, char* address,
                                     const char* name, int is_extern, size_t bytes, int constant,
                                     int global);
SIMGPU_EXPORT void __cudaRegisterManagedVar(void** handle, void** host_variable, char* address,
                                            const char* name, int is_extern, size_t bytes,
                                            int constant, int global);
SIMGPU_EXPORT void __cudaRegisterHostVar(void** handle, const char* name, char* host_variable,
                                         size_t bytes);
SIMGPU_EXPORT void __cudaRegisterUnifiedTable(void** handle, void* table);
SIMGPU_EXPORT char __cudaInitModule(void** handle);
SIMGPU_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                                   struct CUstream_st* stream);
SIMGPU_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                                     void* stream);
SIMGPU_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function);
SIMGPU_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                             void** arguments, size_t shared_bytes,
                                             cudaStream_t stream);
SIMGPU_EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                  void** arguments, size_t shared_bytes,
                                                  cudaStream_t stream);
SIMGPU_EXPORT cudaError_t __cudaGetProcAddress(void);
}

namespace {

Module& module_of(void** handle) {
  return *reinterpret_cast<Module*>(handle);
}

// nvcc 13 launches with handles instead of host functions; tools see a cudaLaunchKernel all the
// same.
cudaError_t launch(EntryPoint& entry, cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t stream, bool per_thread) {
  const Kernel* known = reinterpret_cast<Kernel*>(kernel);
  const bool valid = known != nullptr && known->magic == kKernelMagic;
  cudaLaunchKernel_v7000_params params{
      valid ? known->host_function : nullptr, grid, block, arguments, shared_bytes, stream};
  return finish_runtime(entry, &params, valid ? known->name.c_str() : nullptr, per_thread, [&] {
    if (!valid) return cudaErrorInvalidDeviceFunction;
    KernelWork work;
    work.kernel = reinterpret_cast<Kernel*>(kernel);
    work.grid = dimensions(grid);
    work.block = dimensions(block);
    work.shared_bytes = static_cast<std::uint32_t>(shared_bytes);
    work.arguments = arguments;
    if (const int error = prepare_kernel(work)) return as_error(error);
    return with_stream(stream, [&](Stream& s) { return submit(s, work); });
  });
}

}  // namespace

void** __cudaRegisterFatBinary(void* image) {
  return reinterpret_cast<void**>(register_module(image));
}

void __cudaRegisterFatBinaryEnd(void**) {}

// The module stays: kernels of it may still be queued, and handles to it may be kept.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                            const char* device_name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  register_kernel(module_of(handle), host_function, device_name);
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int,
                       size_t bytes, int, int) {
  register_variable(module_of(handle), host_variable, name, bytes, false);
}

void __cudaRegisterManagedVar(void** handle, void** host_variable, char*, const char* name, int,
                              size_t bytes, int, int) {
  Variable* variable = register_variable(module_of(handle), host_variable, name, bytes, true);
  if (!all_devices().empty()) {
    *host_variable = variable_address(*variable, *all_devices().front());
  }
}

void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}
void __cudaRegisterUnifiedTable(void**, void*) {}
char __cudaInitModule(void**) {
  return 1;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st* stream) {
  thread_state().launches.push_back(
      LaunchConfiguration{dimensions(grid), dimensions(block), shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  std::vector<LaunchConfiguration>& launches = thread_state().launches;
  if (launches.empty()) return cudaErrorMissingConfiguration;
  const LaunchConfiguration& top = launches.back();
  *grid = dim3(top.grid.x, top.grid.y, top.grid.z);
  *block = dim3(top.block.x, top.block.y, top.block.z);
  *shared_bytes = top.shared_bytes;
  *static_cast<void**>(stream) = top.stream;
  launches.pop_back();
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  Kernel* known = find_kernel(host_function);
  if (known == nullptr) return cudaErrorInvalidDeviceFunction;
  *kernel = reinterpret_cast<cudaKernel_t>(known);
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  static EntryPoint entry{ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                          "cudaLaunchKernel"};
  return launch(entry, kernel, grid, block, arguments, shared_bytes, stream, false);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t shared_bytes, cudaStream_t stream) {
  static EntryPoint entry{ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
                          "cudaLaunchKernel_ptsz"};
  return launch(entry, kernel, grid, block, arguments, shared_bytes, stream, true);
}

cudaError_t __cudaGetProcAddress(void) {
  return cudaErrorNotSupported;
}
