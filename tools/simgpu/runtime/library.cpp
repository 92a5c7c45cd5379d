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

}  // namespace

SIMGPU_RUNTIME(cudaGetDriverEntryPoint) {
  return entry_point(p.symbol, p.funcPtr, CUDART_VERSION, p.flags, p.driverStatus);
}

SIMGPU_RUNTIME(cudaGetDriverEntryPointByVersion) {
  return entry_point(p.symbol, p.funcPtr, p.cudaVersion, p.flags, p.driverStatus);
}
