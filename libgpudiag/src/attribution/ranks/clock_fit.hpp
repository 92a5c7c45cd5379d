// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Clocks of hosts brought together: a collective ends for all its ranks at about the same time, so the
// ends of matched collectives say how far the hosts' clocks are apart. Inside of the comparison of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attribution/ranks/job_table.hpp"

namespace gpudiag {

/// One clock: that of a host, or of a rank whose host is not known.
struct HostClock {
  std::string host;
  DurationNs offset;       ///< to be taken off its times at the first use in the job
  double drift_ppm = 0;    ///< how much faster it runs than the first one
  bool tied = true;        ///< false: no collective joins it to the first clock; its times stand as they are
  bool jumped = false;     ///< was set while the job ran
  std::uint64_t jumped_at = 0;  ///< index of the first iteration with another offset
  DurationNs jump;
  DurationNs scatter;      ///< median distance of its ends from those of the others, once aligned

  bool operator==(const HostClock&) const = default;
};

struct ClockFit {
  std::vector<HostClock> clocks;
  std::vector<std::uint32_t> clock_of;  ///< by rank
  TimePoint from;                       ///< where the drift is counted from
  std::vector<DurationNs> steps;        ///< of clock c in iteration i: [c * iterations + i]; empty: no clock jumped
  std::vector<DurationNs> origins;      ///< by rank: its session's origin against the first rank's

  /// A time of `rank` on the first clock.
  TimePoint aligned(std::size_t rank, std::size_t iteration, std::size_t iterations, TimePoint time) const;
};

/// Linear in uses, but for sorting.
ClockFit fit_clocks(std::span<const RankSummary> ranks, const JobTable& table);
/// Puts the table's times on the first clock.
void align(JobTable& table, const ClockFit& fit);

}  // namespace gpudiag
