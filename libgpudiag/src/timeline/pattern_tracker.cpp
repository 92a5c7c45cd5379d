// SPDX-License-Identifier: Apache-2.0
#include "timeline/pattern_tracker.hpp"

#include <algorithm>
#include <bit>

namespace gpudiag {
namespace {

// Of the anchors, those that must have come for a cycle to be one: kernels are chosen by shape, so
// that with sequences of varying length some of them go by other names.
constexpr double kLeastSeen = 0.4;
// From this many anchors on, one alone may be an accident.
constexpr std::size_t kConfirmFrom = 4;
// A stretch of this many lengths of the cycle is that many iterations with a launch lost in between.
constexpr std::int64_t kMostMissed = 4;
// And is as long as they are but for a part of this size.
constexpr std::int64_t kExact = 64;
// Launches between two anchors may be that many more or fewer, and a part of this size.
constexpr std::int64_t kNear = 4;
constexpr std::int64_t kDrift = 25;
// In loops over time steps, so many times as many or as few.
constexpr std::int64_t kVarying = 8;

}  // namespace

PatternTracker::PatternTracker(const CyclePattern& cycle, std::uint64_t index)
    : anchors_(cycle.anchors), length_(cycle.length),
      together_(cycle.together), varying_(cycle.varying),
      optimizers_needed_(std::max<std::uint64_t>(1, (cycle.optimizers + 1) / 2)), slack_(std::max<std::int64_t>(2, cycle.length / 20)),
      ring_(std::bit_ceil(static_cast<std::size_t>(2 * cycle.length + 256))),
      oldest_(static_cast<std::int64_t>(index)), position_(oldest_ - 1), last_complete_(oldest_) {
  slots_.resize(std::bit_ceil(anchors_.size() * 4));
  for (std::size_t i = 0; i < anchors_.size(); ++i) {
    std::size_t at = anchors_[i].key & (slots_.size() - 1);
    while (slots_[at].anchor != kNoAnchor) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {anchors_[i].key, i};
  }
}

std::size_t PatternTracker::find(std::uint64_t key) const {
  for (std::size_t at = key & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].anchor == kNoAnchor || slots_[at].key == key) return slots_[at].anchor;
  }
}

// Beyond what is kept, the oldest that is.
const PatternTracker::Place& PatternTracker::place(std::int64_t index) const {
  const std::int64_t kept = std::max(oldest_, position_ - static_cast<std::int64_t>(ring_.size()) + 1);
  return ring_[static_cast<std::size_t>(std::clamp(index, kept, position_)) & (ring_.size() - 1)];
}

void PatternTracker::add(const Launch& launch, std::vector<Turn>& turns) {
  ++position_;
  ring_[static_cast<std::size_t>(position_) & (ring_.size() - 1)] = {launch.after, launch.start, optimizers_};
  if (launch.optimizer) {
    if (!together_ || position_ - last_optimizer_ <= kTogether) ++optimizers_;
    last_optimizer_ = position_;
  }
  const std::uint64_t key = triple(before_[0], before_[1], launch.symbol);
  before_[0] = before_[1];
  before_[1] = launch.symbol;
  if (const std::size_t anchor = find(key); anchor != kNoAnchor) meet(anchor, turns);
  if (position_ >= deadline_) close(cycle_.end, turns);
}

void PatternTracker::meet(std::size_t anchor, std::vector<Turn>& turns) {
  if (!cycle_.open) {
    cycle_ = opened(anchor);
    return check(turns);
  }
  if (fits(cycle_, anchor)) {
    advance(cycle_, anchor);
    return check(turns);
  }
  if (cycle_.complete && position_ < cycle_.end - slack_) return;
  if (other_.open && fits(other_, anchor)) advance(other_, anchor);
  else other_ = opened(anchor);
  if (takes_over()) take_over(turns);
}

// An anchor that is not of the cycle under way: the next one has begun, or what began was none because
// something else came in between; or a launch too many looks as if.
bool PatternTracker::takes_over() const {
  if (anchors_.size() < kConfirmFrom) return true;
  if (cycle_.complete || position_ > cycle_.start + length_ + length_ / 2) return other_.seen >= 2;
  return other_.seen > cycle_.seen;
}

void PatternTracker::take_over(std::vector<Turn>& turns) {
  const Cycle next = other_;
  if (cycle_.complete) {
    const bool known = next.start_known && next.start <= cycle_.end + slack_;
    close(known ? next.start : std::min(cycle_.end, next.at), turns);
  }
  cycle_ = next;
  other_ = {};
  deadline_ = INT64_MAX;
  check(turns);
}

// Is the anchor at hand further on in the cycle, and as far from the last one as it should be?
bool PatternTracker::fits(const Cycle& cycle, std::size_t anchor) const {
  if (anchor <= cycle.anchor) return false;
  const std::int64_t expected = anchors_[anchor].from_start - anchors_[cycle.anchor].from_start;
  const std::int64_t seen = position_ - cycle.at;
  if (varying_) return seen <= kVarying * expected + kNear && kVarying * (seen + kNear) >= expected;
  return std::abs(seen - expected) <= kNear + expected / kDrift;
}

PatternTracker::Cycle PatternTracker::opened(std::size_t anchor) const {
  const std::int64_t from_start = anchors_[anchor].from_start;
  Cycle cycle;
  cycle.open = true;
  // Near its start the cycle's length in between does not matter.
  cycle.start_known = from_start <= std::max<std::int64_t>(2, length_ / 8);
  cycle.start = position_ - from_start;
  advance(cycle, anchor);
  return cycle;
}

void PatternTracker::advance(Cycle& cycle, std::size_t anchor) const {
  cycle.anchor = anchor;
  cycle.at = position_;
  cycle.end = position_ + anchors_[anchor].to_end;
  ++cycle.seen;
}

void PatternTracker::check(std::vector<Turn>& turns) {
  if (!cycle_.complete) {
    const bool last_quarter = cycle_.anchor + 1 == anchors_.size() || 4 * anchors_[cycle_.anchor].to_end <= length_;
    const auto needed = static_cast<std::size_t>(kLeastSeen * static_cast<double>(anchors_.size()));
    if (!last_quarter || cycle_.seen < std::max<std::size_t>(1, needed)) return;
    cycle_.complete = true;
    other_ = {};
    completed(turns);
  }
  deadline_ = cycle_.complete ? cycle_.end + slack_ + 2 : INT64_MAX;
}

void PatternTracker::close(std::int64_t end, std::vector<Turn>& turns) {
  announce(std::max(end, std::max(cycle_.start, oldest_) + 1), announced_ ? TurnKind::kTraining : TurnKind::kOpening, turns);
  cycle_ = {};
  other_ = {};
  deadline_ = INT64_MAX;
}

// Now it is known that the cycle is one, and what lay before it is told.
void PatternTracker::completed(std::vector<Turn>& turns) {
  last_complete_ = position_;
  if (!cycle_.start_known) {
    const bool goes_on = varying_ && announced_ && cycle_.end - last_turn_ <= kVarying / 2 * length_;
    cycle_.start = goes_on ? last_turn_ : cycle_.end - length_;
  }
  // Of a cycle that began before the first launch only the end is told.
  if (!announced_) return cycle_.start < oldest_ ? void() : announce(cycle_.start, TurnKind::kOpening, turns);
  if (!varying_ && cycle_.start < last_turn_ - slack_ - kNear) {
    cycle_ = {};  // there is no room for it: an anchor was none
    return;
  }
  cycle_.start = std::max(cycle_.start, last_turn_);
  if (cycle_.start - last_turn_ > slack_) tell_stretch(cycle_.start, turns);
}

// Between two cycles there was something else, or one whose anchors were lost.
void PatternTracker::tell_stretch(std::int64_t end, std::vector<Turn>& turns) {
  const std::int64_t stretch = end - last_turn_;
  const std::int64_t missed = std::max<std::int64_t>(1, (stretch + length_ / 2) / length_);
  const std::uint64_t optimizers = place(end).optimizers - turn_optimizers_;
  const bool closed = optimizers >= optimizers_needed_;
  const bool whole = missed <= kMostMissed && std::abs(stretch - missed * length_) <= 2 + stretch / kExact &&
                     (optimizers_needed_ == 1 || optimizers >= static_cast<std::uint64_t>(missed) * optimizers_needed_);
  // Where one launch is the whole optimizer, it may be the one that was lost.
  if (!closed && !(whole && missed == 1 && optimizers_needed_ == 1)) return announce(end, TurnKind::kEvaluation, turns);
  const std::int64_t from = last_turn_;
  for (std::int64_t i = 1; whole && i < missed; ++i)
    announce(from + stretch * i / missed, TurnKind::kTraining, turns);
  if (whole || stretch <= length_) return announce(end, TurnKind::kTraining, turns);
  const std::int64_t closing = last_optimizer_before(end);
  if (end - closing <= slack_ + length_ / 8) {
    announce(end - length_, TurnKind::kEvaluation, turns);
    return announce(end, TurnKind::kTraining, turns);
  }
  announce(closing + 1, TurnKind::kTraining, turns);
  announce(end, TurnKind::kEvaluation, turns);
}

std::int64_t PatternTracker::last_optimizer_before(std::int64_t end) const {
  const std::int64_t oldest = std::max(last_turn_, position_ - static_cast<std::int64_t>(ring_.size()) + 2);
  for (std::int64_t at = end; at > oldest; --at)
    if (place(at).optimizers != place(at - 1).optimizers) return at - 1;
  return oldest;
}

void PatternTracker::announce(std::int64_t index, TurnKind kind, std::vector<Turn>& turns) {
  if (announced_ && index <= last_turn_) return;
  // A launch that is still to come opens the next cycle at the place where the last one ends.
  const Place& at = place(std::min(index, position_));
  announced_ = true;
  last_turn_ = index;
  turn_optimizers_ = at.optimizers;
  turns.push_back({static_cast<std::uint64_t>(index), at.after, at.start, kind});
}

void PatternTracker::finish(std::vector<Turn>& turns) {
  if (cycle_.open && cycle_.complete && cycle_.end <= position_) close(cycle_.end, turns);
}

}  // namespace gpudiag
