// SPDX-License-Identifier: Apache-2.0
//
// SIMGPU_FAULTS for exported functions. A header of its own without cupti.h, for the exports whose
// prototypes are not ours.
#pragma once

#include <string_view>

namespace simgpu::cupti {

/// The fault of one function by its name: waits `delay_ms`, and returns the `error` asked for as
/// a CUptiResult; CUPTI_ERROR_UNKNOWN where a rule names neither. 0 where no rule strikes.
/// `name` is what `name=` is matched against.
int function_fault(const char* function, std::string_view name = {});

}  // namespace simgpu::cupti
