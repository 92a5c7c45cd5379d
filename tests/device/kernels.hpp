// SPDX-License-Identifier: Apache-2.0
//
// The one kernel of the device checks: it occupies its stream for a time that the check chooses.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gpudiag::device {

/// Queues a kernel of one thread that runs for `ns` nanoseconds of the device's own timer. Named
/// `spin`, so that the simulated GPU can be told how long it takes.
cudaError_t launch_spin(cudaStream_t stream, std::uint64_t ns);

}  // namespace gpudiag::device
