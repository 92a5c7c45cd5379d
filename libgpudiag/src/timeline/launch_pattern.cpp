// SPDX-License-Identifier: Apache-2.0
#include "timeline/launch_pattern.hpp"

#include <algorithm>
#include <utility>

namespace gpudiag {
namespace {

// Between searches: so that the fifth iteration is seen to its end before the sixth is.
constexpr std::uint64_t kBetween = 6;      // an n-th of what has been seen
constexpr std::uint64_t kBetweenLeast = 2;
// Without a complete cycle for so long, another one may have taken its place.
constexpr std::uint64_t kLostAfter = 20;   // lengths of the cycle
constexpr std::uint64_t kLostAfterLeast = 4096;

}  // namespace

void LaunchPattern::add(const Launch& launch) {
  ++count_;
  if (tracker_) track(launch);
  if (state_ != State::kFound) remember(launch);
}

void LaunchPattern::track(const Launch& launch) {
  tracker_->add(launch, turns_);
  // An optimizer after all: what was taken for an iteration may be part of one.
  if (evidence_ == CycleEvidence::kOpener && launch.optimizer) {
    tracker_.reset();
    return start_over(State::kSearching);
  }
  const std::uint64_t without = tracker_->since_complete();
  if (state_ == State::kFound && without > std::max(kLostAfterLeast, kLostAfter * length_)) start_over(State::kLost);
  if (state_ == State::kLost && without == 0) {
    state_ = State::kFound;
    history_ = {};
  }
}

void LaunchPattern::start_over(State state) {
  state_ = state;
  searches_from_ = began_at_ = count_ - 1;
  next_search_ = count_ + kBetweenLeast;
}

void LaunchPattern::remember(const Launch& launch) {
  if (history_.size() == kHistory) forget_half();
  history_.push_back(launch);
  if (count_ >= next_search_) search();
}

void LaunchPattern::forget_half() {
  history_.erase(history_.begin(), history_.begin() + kHistory / 2);
  searches_from_ += kHistory / 2;
}

void LaunchPattern::search() {
  // What was not found in all that is remembered is sought again more and more seldom.
  const bool full = searches_from_ > began_at_;
  next_search_ = full ? count_ + (count_ - began_at_) : count_ + std::max(kBetweenLeast, history_.size() / kBetween);
  searched_ = history_.size();
  if (auto found = find_cycle(history_)) follow(std::move(*found));
}

void LaunchPattern::follow(CyclePattern&& cycle) {
  // What closes a step is worth more than what opens one: an evaluation may last long.
  if (state_ == State::kLost && evidence_ != CycleEvidence::kOpener && cycle.evidence == CycleEvidence::kOpener) return;
  if (!turns_.empty()) turned_until_ = turns_.back().index;
  length_ = static_cast<std::size_t>(cycle.length);
  evidence_ = cycle.evidence;
  state_ = State::kFound;
  tracker_.emplace(cycle, searches_from_);
  const std::size_t known = turns_.size();
  const std::uint64_t last = turned_until_;
  for (const Launch& launch : history_) tracker_->add(launch, turns_);
  // What the last cycle has told already stays so.
  turns_.erase(std::remove_if(turns_.begin() + static_cast<std::ptrdiff_t>(known), turns_.end(),
                              [&](const Turn& turn) { return last != 0 && turn.index <= last; }),
               turns_.end());
  history_ = {};
}

void LaunchPattern::finish() {
  if (state_ != State::kFound && history_.size() > searched_) search();
  if (tracker_) tracker_->finish(turns_);
}

std::vector<Turn> LaunchPattern::take_turns() {
  if (!turns_.empty()) turned_until_ = turns_.back().index;
  return std::exchange(turns_, {});
}

}  // namespace gpudiag
