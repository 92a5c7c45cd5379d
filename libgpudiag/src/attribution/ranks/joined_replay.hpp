// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// The ranks' graphs joined at their collectives, and replayed with something removed: a collective
// starts for all when its last participant would arrive (attribution.md, section 6). Inside of the
// comparison of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "attribution/ranks/job_table.hpp"
#include "attribution/ranks/lateness.hpp"

namespace gpudiag {

/// What a world takes away. Either may be empty.
struct World {
  std::function<DurationNs(std::uint32_t use)> work;       ///< of the work before a use
  std::function<DurationNs(std::uint32_t match)> transfer; ///< of a collective's transfer
};

class JoinedReplay {
 public:
  /// Both must outlive it; `table` is aligned.
  JoinedReplay(const JobTable& table, const Lateness& lateness);

  /// From the job's first collective to its last in that world. With nothing removed that is what was
  /// recorded, to the nanosecond where the clocks are aligned.
  DurationNs length(const World& world) const;
  DurationNs recorded() const { return recorded_; }
  /// By iteration: when its last use would end, from the first collective on.
  std::vector<DurationNs> iteration_ends(const World& world) const;

 private:
  void run(const World& world, std::vector<TimePoint>& ends) const;

  const JobTable& table_;
  const Lateness& lateness_;
  std::vector<std::uint32_t> order_;  ///< matches, and lone uses as matches() + use, each after what it waits for
  TimePoint first_ = kTimeMax;
  DurationNs recorded_;
};

}  // namespace gpudiag
