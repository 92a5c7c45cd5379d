// SPDX-License-Identifier: Apache-2.0
//
// What every exported function does first: nothing in a forked child, the fault asked for by
// SIMGPU_FAULTS, and remembering its error for cuptiGetLastError.
#pragma once

#include <cupti.h>

#include <string_view>

#include "../nvml/function_fault.hpp"
#include "library.hpp"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::cupti {

/// Keeps an error of the calling thread until cuptiGetLastError takes it; returns `result`.
CUptiResult remember(CUptiResult result) noexcept;
CUptiResult take_last_error() noexcept;

/// Runs the body of an exported function. `name` is what `name=` in a rule is matched against.
template <class Body>
CUptiResult enter(const char* function, Body&& body, std::string_view name = {}) {
  if (is_inert()) {
    return CUPTI_ERROR_NOT_INITIALIZED;
  }
  const int fault = function_fault(function, CUPTI_ERROR_UNKNOWN, name);
  return remember(fault != 0 ? static_cast<CUptiResult>(fault) : body());
}

}  // namespace simgpu::cupti
