// SPDX-License-Identifier: Apache-2.0
//
// The ways from the runtime to the driver.
#include "runtime/entry.hpp"

#include <cuda.h>
#include <dlfcn.h>

namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

// The simulated driver lies beside this library; our run path finds it.
GetProcAddress driver_lookup() {
  static const auto kLookup = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void* symbol = driver == nullptr ? nullptr : dlsym(driver, "cuGetProcAddress_v2");
    return reinterpret_cast<GetProcAddress>(symbol);
  }();
  return kLookup;
}

cudaError_t entry_point(const char* symbol, void** out, unsigned version, unsigned long long flags,
                        cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || out == nullptr) return cudaErrorInvalidValue;
  *out = nullptr;
  const GetProcAddress lookup = driver_lookup();
  if (lookup == nullptr) return cudaErrorInsufficientDriver;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  lookup(symbol, out, static_cast<int>(version), flags, &found);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  return *out != nullptr || status != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;
}

Module* find_library(cudaLibrary_t library) {
  auto* module = reinterpret_cast<Module*>(library);
  return module != nullptr && module->magic == kModuleMagic ? module : nullptr;
}

}  // namespace

// An image's contents are not read: a kernel comes into being when it is asked for by name.
SIMGPU_RUNTIME(cudaLibraryLoadData) {
  if (p.library == nullptr || p.code == nullptr) return cudaErrorInvalidValue;
  *p.library = reinterpret_cast<cudaLibrary_t>(register_module(p.code));
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaLibraryUnload) {
  Module* module = find_library(p.library);
  if (module == nullptr) return cudaErrorInvalidResourceHandle;
  module->magic = 0;  // kernels of it may still be queued: it stays
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaLibraryGetKernel) {
  Module* module = find_library(p.library);
  if (p.pKernel == nullptr || p.name == nullptr) return cudaErrorInvalidValue;
  if (module == nullptr) return cudaErrorInvalidResourceHandle;
  *p.pKernel = reinterpret_cast<cudaKernel_t>(module_kernel(*module, p.name));
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGetDriverEntryPoint) {
  return entry_point(p.symbol, p.funcPtr, CUDART_VERSION, p.flags, p.driverStatus);
}

SIMGPU_RUNTIME(cudaGetDriverEntryPointByVersion) {
  return entry_point(p.symbol, p.funcPtr, p.cudaVersion, p.flags, p.driverStatus);
}
