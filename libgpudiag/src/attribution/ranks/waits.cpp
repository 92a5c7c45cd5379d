// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/waits.hpp"

#include <algorithm>

namespace gpudiag {

// Of a collective that runs beside compute the exposed part is taken to be its end: compute that could
// go on without it has run out by then.
std::vector<std::optional<RankWait>> divide_communication(const JobTable& table, std::size_t ranks) {
  const std::size_t n = table.iteration_count();
  std::vector<TimePoint> last(table.matches.size(), kTimeMin);
  for (std::size_t m = 0; m < table.matches.size(); ++m)
    for (const std::uint32_t id : table.members_of(table.matches[m]))
      last[m] = std::max(last[m], table.uses[id].arrival);
  std::vector<std::optional<RankWait>> waits(ranks * n);
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < n; ++i) {
      const RankIteration* iteration = table.iteration_of(r, i);
      if (iteration == nullptr) continue;
      RankWait wait;
      bool any = false;
      for (const JobUse& use : table.uses_of(r, i)) {
        if (use.match == kNowhere) {
          wait.unmatched += use.exposed;
          continue;
        }
        any = true;
        const Interval exposed{std::max(use.arrival, use.end - use.exposed), use.end};
        wait.straggler_wait += exposed.clipped_to({use.arrival, last[use.match]}).length();
      }
      if (!any) continue;
      wait.straggler_wait = std::min(wait.straggler_wait, iteration->communication);
      wait.transfer = iteration->communication - wait.straggler_wait;
      waits[r * n + i] = wait;
    }
  return waits;
}

}  // namespace gpudiag
