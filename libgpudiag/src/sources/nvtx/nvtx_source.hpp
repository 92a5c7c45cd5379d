// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// NVTX ranges and marks: what the job says of itself. NVTX calls our functions in place of its own
// empty ones, on the job's threads; Python's nvtx and torch.cuda.nvtx come the same way.
#pragma once

#include <cstdint>

namespace gpudiag {

/// Attaches to one instance of NVTX; each library that was built with its headers has one.
/// `get_export_table` is what NVTX hands to InitializeInjectionNvtx2. False where this instance is
/// too old to be listened to. [any thread]
bool attach_nvtx(const void* (*get_export_table)(std::uint32_t table)) noexcept;

/// Attaches to one instance of an extension of NVTX (`module` is its nvtxExtModuleInfo_t): ranges that
/// end with a payload end there. Others than that of payloads are let be. [any thread]
void attach_nvtx_extension(void* module) noexcept;

/// Instances attached so far.
unsigned nvtx_instances() noexcept;

}  // namespace gpudiag
