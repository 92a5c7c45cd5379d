// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// In which iterations a rank was late beyond chance. Inside of the comparison of ranks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "attribution/ranks/culprits.hpp"

namespace gpudiag {

/// Below it nobody would act, and a job of thousands of ranks always has one that far off.
inline constexpr double kLeastLateShare = 0.01;

struct LateCells {
  std::vector<DurationNs> late;  ///< [rank * iterations + iteration]; 0: not late
  std::vector<std::pair<DurationNs, std::uint32_t>> ranks;  ///< those that are late, by how much in all, falling
};

/// Iterations that may be cut, or are no training, are left out.
LateCells find_late_cells(const JobTable& table, const Lateness& lateness, std::size_t ranks);

/// Whether an iteration of a rank counts where ranks are compared.
bool is_comparable(const RankIteration* iteration);

struct PatternOf {
  LatePattern pattern = LatePattern::kSporadic;
  std::uint32_t period = 0;
};
/// `late` of `seen` iterations, by position, rising.
PatternOf pattern_of(const std::vector<std::size_t>& late, std::size_t seen);

}  // namespace gpudiag
