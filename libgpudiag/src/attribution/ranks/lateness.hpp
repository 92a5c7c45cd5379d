// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// How far each rank was behind the ranks of its role at each collective, and each collective's transfer
// behind those like it. What counts is a rank's own time, in which it did not wait for communication:
// whoever only waited is not late. Inside of the comparison of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/ranks/clock_fit.hpp"
#include "attribution/ranks/job_table.hpp"
#include "attribution/ranks/roles.hpp"

namespace gpudiag {

/// Of one rank in one iteration.
struct RankLateness {
  DurationNs most;      ///< the furthest it was behind its role by its own work, at any of its uses
  double noise = 0;     ///< standard deviation at that place where nothing is wrong, in ns
};

struct Lateness {
  /// By use: how much of its `work` the ranks of its role did not need; 0 where it has nothing to be
  /// compared with.
  std::vector<DurationNs> excess;
  std::vector<DurationNs> transfer;   ///< by match: from its last arrival to its end
  std::vector<DurationNs> slower;     ///< by match: than those like it; of either sign
  std::vector<double> transfer_noise; ///< by match
  std::vector<RankLateness> cells;    ///< [rank * iterations + iteration]
  std::vector<DurationNs> step;       ///< by iteration: its length on the ranks, median
};

/// `table` is aligned.
Lateness measure_lateness(const JobTable& table, const ClockFit& clocks, const Roles& roles, std::size_t ranks);

}  // namespace gpudiag
