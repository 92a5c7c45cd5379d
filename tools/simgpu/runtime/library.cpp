// SPDX-License-Identifier: Apache-2.0
//
// The ways from the runtime to the driver.
#include "runtime/entry.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <string>

namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

// The simulated driver: the copy already loaded, else the one beside this library. Asked for by its
// path, since a tool that wraps dlopen would hide our run path.
void* open_driver() {
  if (void* loaded = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) return loaded;
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&open_driver), &here) == 0) return nullptr;
  const std::string path = here.dli_fname;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return dlopen((folder + "libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
}

GetProcAddress driver_lookup() {
  static const auto kLookup = [] {
    void* driver = open_driver();
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
