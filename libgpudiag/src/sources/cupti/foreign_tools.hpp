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

/// File name of the library to which NVTX_INJECTION64_PATH leads NVTX; empty where it is not set.
std::string nvtx_injection();

/// True where that is a CUPTI library: ranges then come as records of CUPTI's, and not by our injection.
bool nvtx_leads_to_cupti();

}  // namespace gpudiag
