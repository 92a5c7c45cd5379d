// SPDX-License-Identifier: Apache-2.0
//
// A tool as CUDA_INJECTION64_PATH names one: says when it was called and which call came first.
#include <cuda_runtime_api.h>

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

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  int devices = 0;
  // A tool may call CUDA from here, and must not be initialised again by that.
  cudaGetDeviceCount(&devices);
  std::fprintf(stderr, "injected devices %d\n", devices);
  simgpu::set_listener(&kListener);
  simgpu::set_wanted(simgpu::kWantRuntimeApi);
  return 1;
}
