// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Gradient accumulation that reduces the gradients after every micro-batch: the counts of collectives
// betray it, whatever the code says. Inside of the comparison of ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attribution/ranks/job_table.hpp"

namespace gpudiag {

/// How often an iteration reduces the same tensors over all ranks; 0: once, or it cannot be told. Two
/// backward passes are told from two buckets of one by time: the former lie all over the iteration.
std::uint32_t find_repeated_reductions(const JobTable& table, std::size_t ranks);

}  // namespace gpudiag
