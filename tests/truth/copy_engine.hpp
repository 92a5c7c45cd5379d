// SPDX-License-Identifier: Apache-2.0
// Flow: jobs -> program -> [machine] -> tracer -> engine under test; judge compares.
// One copy engine of a simulated device.
#pragma once

#include <cstddef>
#include <deque>

#include "record/time.hpp"

namespace gpudiag::truth {

/// A copy engine takes a copy when it can start, in whatever order the copies were queued.
class CopyEngine {
 public:
  TimePoint reserve(TimePoint ready, DurationNs length) {
    TimePoint start = ready;
    std::size_t at = 0;
    for (; at < busy_.size(); ++at) {
      if (busy_[at].end <= start) continue;
      if (busy_[at].start >= start + length) break;
      start = busy_[at].end;
    }
    busy_.insert(busy_.begin() + static_cast<std::ptrdiff_t>(at), Interval{start, start + length});
    if (busy_.size() > kRemembered) busy_.pop_front();
    return start;
  }

 private:
  static constexpr std::size_t kRemembered = 4096;
  std::deque<Interval> busy_;  // sorted, disjoint
};

}  // namespace gpudiag::truth
