// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Which iterations speak for the job: complete, valid training iterations after warm-up
// (attribution.md, section 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attribution/ledger.hpp"

namespace gpudiag {

/// Below this many steady iterations findings rest on all iterations, with confidence low.
inline constexpr std::size_t kSteadyNeeded = 3;

/// Whether warm-up aside this iteration may be counted as steady.
bool is_complete_training(const IterationLedger& ledger);

/// How many of these wall times, in ns and in order, are warm-up: those before the first three in a
/// row that each lie within 20 % of the median of what comes from there on (of an even number, the
/// larger of the middle two), or, in a job whose pace is uneven for good, as near to it as three in four
/// of its later half lie to theirs. All of them where there are no such three. O(n log n).
std::size_t warm_up_length(std::span<const std::int64_t> walls);

}  // namespace gpudiag
