// SPDX-License-Identifier: Apache-2.0
//
// A process for each test: CUPTI's state is one per process and never goes away.
#pragma once

#include <functional>
#include <string>

namespace simgpu::testing {

/// Runs `body` in a process of its own with SIMGPU_FAULTS set to `faults`, so that each test has
/// a fresh library. Its failed expectations fail the caller; so does a crash or 60 s without end.
void in_own_process(const std::string& faults, const std::function<void()>& body);

}  // namespace simgpu::testing
