// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// A device's queue of launches: full, it holds up the next launch until the oldest has left it.
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/worlds.hpp"

namespace gpudiag {

class LaunchQueue {
 public:
  /// When the launch left that must have done so before one more is taken. Null: there is room. [hot]
  const Arrival* awaited(std::uint32_t depth) const {
    return depth == 0 || disproved_ || launches_ < depth ? nullptr : &left_[next_];
  }
  /// A launch was taken that should have been held up: the queue is deeper than that.
  void disprove() { disproved_ = true; }
  /// A launch that holds its place until its first operation starts. `depth` is not 0. [hot]
  void enter(std::uint32_t depth, std::int64_t starts, const Lanes& starts_in) {
    if (left_.size() < depth) left_.resize(depth);
    Arrival& slot = left_[next_];
    ++launches_;
    if (++next_ == depth) next_ = 0;
    slot.at = starts;
    slot.in = starts_in;
  }

  template <typename Visit>
  void for_each(Visit visit) {
    for (Arrival& left : left_) visit(left);
  }

 private:
  std::vector<Arrival> left_;  ///< when each of the last `depth` launches left the queue
  std::uint32_t next_ = 0;     ///< the oldest of them, and the place of the next
  std::uint64_t launches_ = 0;
  bool disproved_ = false;
};

}  // namespace gpudiag
