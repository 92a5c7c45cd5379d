// SPDX-License-Identifier: Apache-2.0
// Where the host's time is cut into iterations, and what an iteration is given when it ends.
#include <algorithm>
#include <utility>

#include "attribution/engine_impl.hpp"

namespace gpudiag {
namespace {

// A device that never works again keeps each of them.
constexpr std::size_t kHolesKept = 1000;

constexpr std::size_t at(InvalidReason reason) { return static_cast<std::size_t>(reason); }

}  // namespace

std::optional<Boundary> Engine::Impl::next_boundary(Index loop) const {
  if (loop != kNone) {
    const Boundary* next = in_.loops[loop].next();
    return next != nullptr ? std::optional{*next} : std::nullopt;
  }
  if (window_start_ == kTimeMin || !in_.loops.empty() || unmarked_.holding()) return std::nullopt;
  const std::int64_t window = std::max<std::int64_t>(1, options_.window.ns);
  // A long silence is one window, not many empty ones.
  const std::int64_t silent = std::max<std::int64_t>(0, (next_start() - window_start_).ns);
  const std::int64_t windows = std::max<std::int64_t>(1, silent / window);
  return Boundary{window_start_ + DurationNs{windows * window}, kNoName, kNoIndex, false,
                  false};
}

// When the next call or operation that has not been replayed begins, or may.
TimePoint Engine::Impl::next_start() const {
  TimePoint next = kTimeMax;
  if (next_call_ < in_.store.calls.size()) next = in_.store.calls[next_call_].start;
  for (std::size_t i = next_orphan_; i < in_.store.by_start.size(); ++i) {
    const Operation& operation = in_.store.operations[in_.store.by_start[i]];
    if (operation.start >= next) break;
    if (operation.replayed || operation.call != kNone) continue;
    next = operation.start;
    break;
  }
  return next != kTimeMax ? next : std::max(window_start_, in_.ticked);
}

bool Engine::Impl::take_cuts(bool final) {
  bool any = false;
  for (;;) {
    std::optional<TimePoint> cut;
    for (const Followed& device : devices_)
      if (const auto next = next_boundary(device.loop); next && (!cut || next->at < *cut))
        cut = next->at;
    // With nothing on any device yet, marks pass unseen.
    if (!cut || (!final && *cut > in_.ticked)) return any;
    if (final && in_.loops.empty() && *cut > in_.last_start) return any;
    if (!cut_at(*cut, final)) return any;
    any = true;
    close_windows(false);
  }
}

// Cuts the host's time at the earliest boundary; false where there is none yet or it must wait.
bool Engine::Impl::cut_at(TimePoint cut, bool final) {
  const bool complete = final || outstanding_.complete(next_call_, cut);
  const bool gave_up = !complete && cut + options_.give_up_after <= in_.ticked;
  if (!complete && !gave_up) return false;
  replay_until(cut, final);
  for (Followed& device : devices_) {
    const auto boundary = next_boundary(device.loop);
    if (boundary && boundary->at == cut) end_iteration(device, *boundary, gave_up, false);
  }
  think_over_questions();
  for (Loop& loop : in_.loops)
    while (loop.next() != nullptr && loop.next()->at <= cut) loop.take();
  if (in_.loops.empty()) window_start_ = cut;
  reset_lines(cut);
  return true;
}

void Engine::Impl::end_part(Followed& device) {
  const auto index = static_cast<Index>(&device - devices_.data());
  PendingWindow window = device.ledger.end_host_iteration(replay_, in_.ties, in_.store);
  window.part = true;
  window.ledger.process = in_.process;
  window.ledger.device = device.ledger.id();
  window.ledger.launches = std::exchange(device.launches, 0);
  window.ledger.operations = std::exchange(device.operations, 0);
  window.ledger.invalid[at(InvalidReason::kLaunchesWithoutOperations)] +=
      std::exchange(device.missing, 0);
  if (const Index leader = in_.ties.leader_of(index); leader != kNone) {
    window.evidence = replay_.line(leader).evidence;
    window.ledger.own = replay_.line(leader).own;
  }
  device.ledger.push(std::move(window));
}

void Engine::Impl::end_iteration(Followed& device, const Boundary& boundary, bool gave_up,
                                 bool partial) {
  const auto index = static_cast<Index>(&device - devices_.data());
  PendingWindow window = device.ledger.end_host_iteration(replay_, in_.ties, in_.store);
  IterationLedger& ledger = window.ledger;
  ledger.process = in_.process;
  ledger.device = device.ledger.id();
  ledger.label = std::string(names_.text(boundary.label));
  ledger.opened_by = device.loop == kNone ? MarkSource::kWindow : in_.loops[device.loop].source();
  const bool none = device.loop == kNone || boundary.opening;  // it is no iteration
  ledger.phase = none ? Phase::kWindow : boundary.evaluation ? Phase::kEvaluation : Phase::kTrain;
  ledger.partial = partial || device.first || boundary.opening || (device.in_window && !none);
  ledger.launches = std::exchange(device.launches, 0);
  ledger.operations = std::exchange(device.operations, 0);
  const auto missing = std::exchange(device.missing, 0);
  ledger.invalid[at(gave_up ? InvalidReason::kMissingRecords
                            : InvalidReason::kLaunchesWithoutOperations)] += missing;
  count_defects(ledger, device, index, window.window, boundary.at);
  ledger.invalid[at(InvalidReason::kReplayMismatch)] += device.mismatches;
  if (device.host_start != kTimeMin && boundary.at != kTimeMax)
    ledger.host_step = boundary.at - device.host_start;
  if (const Index leader = in_.ties.leader_of(index); leader != kNone) {
    window.evidence = replay_.line(leader).evidence;
    ledger.own = replay_.line(leader).own;
  }
  inquiry_.add(ledger, window.evidence);
  // What came before the first iteration, or after the last, is one only if the device worked.
  const bool nothing = ledger.launches == 0 && ledger.operations == 0 && missing == 0;
  const bool skipped = nothing && (ledger.partial || (none && ledger.valid())) && window.window.empty();
  ledger.index = none ? device.windows : boundary.index != kNoIndex ? boundary.index : device.count;
  if (!skipped) {
    if (none) ++device.windows;
    else device.count = ledger.index + (boundary.evaluation ? 0 : 1);
    device.ledger.push(std::move(window));
  }
  device.first = false;
  device.in_window = device.loop == kNone;
  device.host_start = boundary.at;
}

void Engine::Impl::count_hole(Hole& hole, Index device, IterationLedger& ledger) {
  ledger.invalid[hole.reason] += hole.count;
  const std::uint64_t bit = std::uint64_t{1} << (device % 64);
  if ((hole.counted_for & bit) != 0) ledger.counted_before[hole.reason] += hole.count;
  hole.counted_for |= bit;
}

void Engine::Impl::count_defects(IterationLedger& ledger, const Followed& device, Index index,
                                 Interval window, TimePoint until) {
  for (const Defective& defect : in_.store.defects)
    if (defect.at < until && (defect.device == kNone || defect.device == index))
      ledger.invalid[defect.reason] += defect.count;
  for (Hole& hole : in_.holes) {
    if (hole.time.start >= until) continue;  // what was launched before it has been recorded
    if (hole.time.end >= device.host_start || reaches_into(hole, window)) count_hole(hole, index, ledger);
  }
}

// Of what ran while nothing was recorded nobody knows, so the first operation after it ends a window that
// cannot be told, though the host's iteration may have begun later.
bool Engine::Impl::reaches_into(const Hole& hole, Interval window) {
  return hole.reason == at(InvalidReason::kStoodAside) && hole.time.start < window.end && hole.time.end > window.start;
}

bool Engine::Impl::is_past(const Hole& hole, TimePoint until) const {
  if (hole.time.end >= until) return false;
  // Until each device has worked again, its next window begins before the hole.
  return hole.reason != at(InvalidReason::kStoodAside) || in_.holes.size() > kHolesKept ||
         std::ranges::all_of(devices_, [&](const Followed& device) {
           return !device.ledger.opened() || device.ledger.boundary() >= hole.time.end;
         });
}

void Engine::Impl::think_over_questions() {
  const auto [communication, copies] = replay_.take_busy();
  inquiry_.add_busy(communication, copies);
  if (!inquiry_.end_iteration()) return;
  Inquiry::Questions wanted = inquiry_.choose();
  const auto asked = [&](std::size_t place) { return replay_.worlds().asked(place); };
  // What is asked already stays where it is, and goes on with what it has gathered.
  for (std::size_t place = 0; place < kAskedWorlds; ++place)
    for (std::size_t other = 0; other < kAskedWorlds; ++other)
      if (wanted[other] == asked(place)) std::swap(wanted[other], wanted[place]);
  for (std::size_t place = 0; place < kAskedWorlds; ++place) {
    if (wanted[place] == asked(place) || !is_asked(wanted[place])) continue;
    replay_.ask(place, wanted[place]);
    for (Followed& device : devices_) device.ledger.begin_anew(place);
  }
}

void Engine::Impl::reset_lines(TimePoint until) {
  for (Index thread = 0; thread < in_.ties.threads(); ++thread) {
    if (in_.ties.line_of(thread) != thread) continue;
    HostLine& line = replay_.line(thread);
    line.evidence.clear();
    line.own = {};
  }
  std::erase_if(in_.store.defects, [&](const Defective& defect) { return defect.at < until; });
  std::erase_if(in_.holes, [&](const Hole& hole) { return is_past(hole, until); });
}

}  // namespace gpudiag
