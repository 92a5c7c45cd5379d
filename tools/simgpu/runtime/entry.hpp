// SPDX-License-Identifier: Apache-2.0
//
// What the generated entry points of the simulated libcudart and its handlers share.
#pragma once

#include <cuda_runtime_api.h>
#include <generated_cuda_runtime_api_meta.h>

#include <utility>
#include <vector>

#include "core/api.hpp"
#include "core/graph.hpp"
#include "core/kernels.hpp"
#include "core/memory.hpp"
#include "core/sync.hpp"
#include "core/work.hpp"
#include "runtime_api.hpp"

#define SIMGPU_EXPORT __attribute__((visibility("default")))
// A handler; the generator finds these by their text.
#define SIMGPU_RUNTIME(name) \
  cudaError_t simgpu::runtime::name([[maybe_unused]] const name##_params& p)
#define SIMGPU_RUNTIME_VOID(name) cudaError_t simgpu::runtime::name()

namespace simgpu {

inline cudaError_t as_error(int error) {
  return static_cast<cudaError_t>(error);
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
inline const char* symbol_of(const cudaLaunchKernel_v7000_params& p) {
  return kernel_symbol(p.func);
}
inline const char* symbol_of(const cudaLaunchKernel_ptsz_v7000_params& p) {
  return kernel_symbol(p.func);
}
inline const char* symbol_of(const cudaLaunchKernelExC_v11060_params& p) {
  return kernel_symbol(p.func);
}
inline const char* symbol_of(const cudaLaunchKernelExC_ptsz_v11060_params& p) {
  return kernel_symbol(p.func);
}
inline const char* symbol_of(const cudaLaunchCooperativeKernel_v9000_params& p) {
  return kernel_symbol(p.func);
}

// Runs one runtime call. `per_thread`: stream 0 is the thread's own default stream.
template <typename Body>
cudaError_t finish_runtime(EntryPoint& entry, const void* params, const char* symbol,
                           bool per_thread, Body&& body) {
  ThreadState& thread = thread_state();
  const bool outer = std::exchange(thread.per_thread_default, per_thread);
  const int result = run_call(entry, params, symbol, [&] { return static_cast<int>(body()); });
  thread.per_thread_default = outer;
  if (result != 0) thread.last_error = result;
  return as_error(result);
}

// The same for calls that only hand out the last error.
template <typename Body>
cudaError_t query_runtime(EntryPoint& entry, const void* params, const char* symbol, bool,
                          Body&& body) {
  return as_error(run_call(entry, params, symbol, [&] { return static_cast<int>(body()); }));
}

// The current device, or null where there is none.
inline Device* current_device() {
  Context* context = require_context();
  return context == nullptr ? nullptr : context->device;
}

inline bool is_device(int device) {
  return device >= 0 && static_cast<std::size_t>(device) < all_devices().size();
}

inline Dimensions dimensions(dim3 d) {
  return Dimensions{d.x, d.y, d.z};
}

// Runs `use` with the stream, or says that the handle is none.
template <typename Use>
cudaError_t with_stream(cudaStream_t handle, Use&& use) {
  Stream* stream = find_stream(handle);
  return stream == nullptr ? cudaErrorInvalidResourceHandle : as_error(use(*stream));
}

template <typename Use>
cudaError_t with_event(cudaEvent_t handle, Use&& use) {
  Event* event = find_event(handle);
  return event == nullptr ? cudaErrorInvalidResourceHandle : as_error(use(*event));
}

// Shared by several files of handlers.
cudaError_t copy_linear(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream, bool is_async);
KernelWork kernel_work(const cudaKernelNodeParams& params);
cudaError_t copy_3d_work(const cudaMemcpy3DParms& params, CopyWork& work);
FillWork fill_work(const cudaMemsetParams& params);

}  // namespace simgpu

using namespace simgpu;  // NOLINT: handlers are these libraries' only contents
