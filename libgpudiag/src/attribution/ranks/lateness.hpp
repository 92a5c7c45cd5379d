// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// How much longer each rank took from one collective to the next than the ranks of its role did, and
// each collective's transfer than those like it. Measured on a rank's own clock, from the end of what
// it last waited for: whoever only waited is not late. Inside of the comparison of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/ranks/clock_fit.hpp"
#include "attribution/ranks/job_table.hpp"
#include "attribution/ranks/roles.hpp"

namespace gpudiag {

/// Of one rank in one iteration.
struct RankLateness {
  DurationNs sum;       ///< of all its work against its role, of either sign
  DurationNs outliers;  ///< of the pieces that stand out alone
  double noise = 0;     ///< standard deviation of `sum` where nothing is wrong, in ns
};

struct Lateness {
  std::vector<DurationNs> excess;     ///< by use: of its work; 0 where it has nothing to be compared with
  std::vector<DurationNs> transfer;   ///< by match: from its last arrival to its end
  std::vector<DurationNs> slower;     ///< by match: than those like it; of either sign
  std::vector<double> transfer_noise; ///< by match
  std::vector<RankLateness> cells;    ///< [rank * iterations + iteration]
  std::vector<DurationNs> step;       ///< by iteration: its length on the ranks, median
};

/// `table` is aligned.
Lateness measure_lateness(const JobTable& table, const ClockFit& clocks, const Roles& roles, std::size_t ranks);

}  // namespace gpudiag
