// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Who else traces this process. The user's own tool goes first, always.
#pragma once

#include <string>

namespace gpudiag {

/// Name of the vendor tool that this process runs under (Nsight Systems, Nsight Compute, Compute
/// Sanitizer, cuda-gdb's injection), by its variables and its loaded libraries; empty where none.
std::string foreign_tool();

/// True where libtorch is loaded: its profiler will want the one CUPTI subscriber.
bool torch_loaded();

}  // namespace gpudiag
