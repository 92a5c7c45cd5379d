// SPDX-License-Identifier: Apache-2.0
//
// What the generated entry points of the simulated libcuda and its handlers share.
#pragma once

// Gives the first versions of types and functions too, and no macros in the place of names.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <generated_cuda_meta.h>

#include <utility>
#include <vector>

#include "core/allocation.hpp"
#include "core/api.hpp"
#include "core/graph.hpp"
#include "core/kernels.hpp"
#include "core/memory.hpp"
#include "core/sync.hpp"
#include "core/work.hpp"
#include "driver_api.hpp"

#define SIMGPU_EXPORT __attribute__((visibility("default")))
// A handler; the generator finds these by their text, so names stand with their _v2.
#define SIMGPU_DRIVER(name) CUresult simgpu::driver::name([[maybe_unused]] const name##_params& p)
#define SIMGPU_DRIVER_VOID(name) CUresult simgpu::driver::name()

namespace simgpu {

inline CUresult as_result(int error) {
  return static_cast<CUresult>(error);
}

// Kernel name of a launch, for the tools; looked up only when one listens.
template <typename Params>
const char* symbol_of(const Params&) {
  return nullptr;
}
inline const char* kernel_symbol(const void* function) {
  if (!listener_wants(kWantSymbols)) return nullptr;
  const Kernel* kernel = find_kernel(function);
  return kernel == nullptr ? nullptr : kernel->name.c_str();
}
inline const char* symbol_of(const cuLaunchKernel_params& p) {
  return kernel_symbol(p.f);
}
inline const char* symbol_of(const cuLaunchKernel_ptsz_params& p) {
  return kernel_symbol(p.f);
}
inline const char* symbol_of(const cuLaunchKernelEx_params& p) {
  return kernel_symbol(p.f);
}
inline const char* symbol_of(const cuLaunchKernelEx_ptsz_params& p) {
  return kernel_symbol(p.f);
}

// Runs one driver call. Before cuInit all but a few fail, as with the real driver.
template <typename Body>
CUresult finish_driver(EntryPoint& entry, const void* params, const char* symbol, bool per_thread,
                       Body&& body) {
  if (entry.needs_device && !driver_initialised() && !thread_state().initialising) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  ThreadState& thread = thread_state();
  const bool outer = std::exchange(thread.per_thread_default, per_thread);
  const int result = run_call(entry, params, symbol, [&] { return static_cast<int>(body()); });
  thread.per_thread_default = outer;
  return as_result(result);
}

inline Device* find_device(CUdevice device) {
  const auto devices = all_devices();
  return device >= 0 && static_cast<std::size_t>(device) < devices.size()
             ? devices[static_cast<std::size_t>(device)]
             : nullptr;
}

// The driver never makes a context on its own.
inline Context* driver_context() {
  return static_cast<Context*>(current_context());
}

inline Context* find_context(CUcontext handle) {
  auto* context = reinterpret_cast<Context*>(handle);
  return context != nullptr && context->magic == kContextMagic ? context : nullptr;
}

template <typename Use>
CUresult with_stream(CUstream handle, Use&& use) {
  if (driver_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Stream* stream = find_stream(handle);
  return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : as_result(use(*stream));
}

template <typename Use>
CUresult with_event(CUevent handle, Use&& use) {
  Event* event = find_event(handle);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : as_result(use(*event));
}

inline void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace simgpu

using namespace simgpu;  // NOLINT: handlers are these libraries' only contents
