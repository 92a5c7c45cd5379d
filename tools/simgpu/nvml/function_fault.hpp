// SPDX-License-Identifier: Apache-2.0
//
// SIMGPU_FAULTS for the exported functions of CUPTI and NVML. Without their headers, for exports
// whose prototypes are not ours.
#pragma once

#include <string_view>

namespace simgpu {

/// The fault of one function by its name: waits `delay_ms`, and returns the `error` the rule asks
/// for, `default_error` where it names neither. 0 where no rule strikes. `name` is what `name=`
/// is matched against.
int function_fault(const char* function, int default_error, std::string_view name = {});

}  // namespace simgpu
