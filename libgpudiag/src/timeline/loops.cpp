// SPDX-License-Identifier: Apache-2.0
#include "timeline/loops.hpp"

#include <algorithm>
#include <tuple>

namespace gpudiag {

void Loop::add_mark(TimePoint at, NameId label, std::uint64_t index, bool evaluation) {
  boundaries_.push_back({at, label, index, false, false, evaluation});
  first_seen_ = std::min(first_seen_, at);
  sorted_ = false;
  ++count_;
}

void Loop::add_turn(TimePoint at, bool opening, bool evaluation) {
  boundaries_.push_back({at, kNoName, kNoIndex, opening, false, evaluation});
  first_seen_ = std::min(first_seen_, at);
  sorted_ = false;
  ++count_;
}

void Loop::add_range(Interval range, NameId label, std::uint64_t index) {
  if (!opened_ && (!opening_ || range.start < *opening_)) opening_ = range.start;
  boundaries_.push_back({range.end, label, index, false, true});
  first_seen_ = std::min(first_seen_, range.start);
  sorted_ = false;
  ++count_;
}

void Loop::prepare() {
  if (sorted_) return;
  sorted_ = true;
  if (opening_ && !opened_) {
    std::erase_if(boundaries_, [](const Boundary& boundary) { return boundary.opening; });
    boundaries_.push_back({*opening_, kNoName, kNoIndex, true, true});
  }
  std::stable_sort(boundaries_.begin() + static_cast<std::ptrdiff_t>(taken_), boundaries_.end(),
                   [](const Boundary& a, const Boundary& b) {
                     return std::tie(a.at, b.opening, a.index) < std::tie(b.at, a.opening, b.index);
                   });
}

void Loop::compact() {
  if (taken_ == 0) return;
  opened_ = opened_ || boundaries_.front().opening;
  boundaries_.erase(boundaries_.begin(), boundaries_.begin() + static_cast<std::ptrdiff_t>(taken_));
  taken_ = 0;
  if (opening_) opened_ = true;
}

bool more_trusted(const Loop& a, const Loop& b) {
  return std::tuple(a.source(), a.first_seen()) < std::tuple(b.source(), b.first_seen());
}

}  // namespace gpudiag
