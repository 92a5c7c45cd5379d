// SPDX-License-Identifier: Apache-2.0
//
// A tool as CUDA_INJECTION64_PATH and NVTX_INJECTION64_PATH name one: says when it was called, which
// call came first, and which ranges begin.
#include <cuda_runtime_api.h>
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdio>

#include "core/listener.hpp"

namespace {

std::atomic<int> g_calls{0};

void on_enter(simgpu::ApiCall& call) {
  if (g_calls++ == 0) std::fprintf(stderr, "first call %s\n", call.function_name);
}

constexpr simgpu::Listener kListener = {on_enter, nullptr, nullptr, nullptr,
                                        nullptr,  nullptr, nullptr};

int on_push(const char* name) {
  std::fprintf(stderr, "range %s\n", name);
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) != 1) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(on_push);
  return 1;
}

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  int devices = 0;
  // A tool may call CUDA from here, and must not be initialised again by that.
  cudaGetDeviceCount(&devices);
  std::fprintf(stderr, "injected devices %d\n", devices);
  simgpu::set_listener(&kListener);
  simgpu::set_wanted(simgpu::kWantRuntimeApi);
  return 1;
}
