// SPDX-License-Identifier: Apache-2.0
#include "attribution/unmarked.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace gpudiag {
namespace {

// Between looks in which little has come: sorting and joining what lies here costs time each time.
constexpr DurationNs kBetween = seconds(1);
constexpr std::size_t kEighth = 8;

LaunchKind kind_of(CopyKind copy) {
  switch (copy) {
    case CopyKind::kHostToDevice: return LaunchKind::kToDevice;
    case CopyKind::kDeviceToHost: return LaunchKind::kToHost;
    default: return LaunchKind::kOtherCopy;
  }
}

}  // namespace

bool Unmarked::is_marked() const {
  return std::ranges::any_of(in_.loops, [](const Loop& loop) { return loop.source() < MarkSource::kLaunchPattern; });
}

bool Unmarked::wants_records() const {
  if (!options_.launch_pattern || in_.first == kTimeMax || is_marked()) return false;
  const std::size_t pending = in_.store.pending();
  return in_.ticked >= looked_at_ + kBetween || (pending > pending_ && (pending - pending_) * kEighth >= pending);
}

void Unmarked::look(TimePoint frontier, bool final) {
  waits_ = false;
  if (!options_.launch_pattern || is_marked()) {
    devices_.clear();
    return;
  }
  looked_at_ = in_.ticked;
  auto& calls = in_.store.calls;
  auto next = std::ranges::lower_bound(calls, fed_until_, {}, &Call::start);
  for (; next != calls.end(); ++next) {
    if (!final && next->start >= in_.ticked) break;
    const bool gave_up = next->start + options_.give_up_after <= in_.ticked;
    if (!final && !gave_up && outstanding_.lacks_operation(*next, in_.ticked - kPatience)) break;
    if (!std::exchange(next->looked_for_pattern, true)) feed(*next);
    fed_until_ = next->start;
  }
  for (Index device = 0; device < devices_.size(); ++device) {
    if (final) devices_[device].pattern.finish();
    take_turns(device, frontier);
  }
  pending_ = in_.store.pending();
  decide(final);
}

// Silence is what no call of the line fills: a call that blocks is no wait for a batch.
void Unmarked::hear(Line& line, const Call& call) const {
  if (line.end != kTimeMin && call.start - line.end > line.silence) {
    line.silence = std::max(DurationNs{}, call.start - line.end);
    line.silent_from = std::min(line.end, call.start);
  }
  line.end = std::max(line.end, call.end);
}

void Unmarked::feed(Call& call) {
  if (call.nested || call.capturing) return;
  const Index thread = in_.ties.line_of(call.thread);
  if (thread >= lines_.size()) lines_.resize(thread + 1);
  Line& line = lines_[thread];
  hear(line, call);
  if (call.first_operation == kNone) return;
  const Index device = in_.store.operations[call.first_operation].device;
  if (!in_.ties.line_in_chain(device, thread)) return;
  if (device >= devices_.size()) devices_.resize(device + 1);
  Launch launch = launch_of(call);
  launch.start = call.start;
  launch.after = line.silence < DurationNs{} ? call.start : line.silent_from;
  launch.pause = std::max(DurationNs{}, line.silence);
  line.silence = DurationNs{-1};
  devices_[device].pattern.add(launch);
}

void Unmarked::describe(const Operation& operation, Launch& launch) {
  if (operation.kind == RecordKind::kMemcpy) launch.kind = kind_of(operation.copy);
  if (operation.kind == RecordKind::kMemset) launch.kind = LaunchKind::kMemset;
  launch.symbol = symbol_of(launch.kind);
  if (operation.kind == RecordKind::kMemcpy || operation.kind == RecordKind::kMemset) {
    launch.shaped = launch.symbol;
    return;
  }
  const LaunchNames::Entry entry = known_.of(operation.name, names_);
  launch.symbol ^= entry.symbol;
  launch.shaped = with_shape(launch.symbol, operation.kind == RecordKind::kKernel ? operation.bytes : 0);
  launch.optimizer = entry.optimizer;
}

Launch Unmarked::launch_of(const Call& call) {
  const auto& operations = in_.store.operations;
  const Operation& first = operations[call.first_operation];
  Launch launch;
  const bool graph = call.api == ApiClass::kGraphLaunch || first.kind == RecordKind::kGraph;
  if (graph) launch.kind = LaunchKind::kGraph;
  describe(first, launch);
  if (!graph) return launch;
  // A graph that begins with a copy is a graph all the same, known by its first kernel.
  launch.kind = LaunchKind::kGraph;
  bool named = first.kind == RecordKind::kKernel || first.kind == RecordKind::kGraph;
  for (Index i = first.next; i != kNone; i = operations[i].next) {
    if (operations[i].kind != RecordKind::kKernel) continue;
    const LaunchNames::Entry entry = known_.of(operations[i].name, names_);
    if (!std::exchange(named, true)) launch.symbol = launch.shaped = symbol_of(LaunchKind::kGraph) ^ entry.symbol;
    launch.optimizer = launch.optimizer || entry.optimizer;
  }
  return launch;
}

Loop& Unmarked::loop_of(Index device) {
  for (Loop& loop : in_.loops)
    if (loop.source() == MarkSource::kLaunchPattern && loop.device() == device) return loop;
  const Index leader = in_.ties.leader_of(device);
  return in_.loops.emplace_back(MarkSource::kLaunchPattern, leader == kNone ? 0 : leader, device);
}

// A turn of which the time has been charged, as windows or as part of a long iteration, is of no use any
// more; the next one then opens an iteration anew.
void Unmarked::take_turns(Index index, TimePoint frontier) {
  Device& device = devices_[index];
  for (const Turn& turn : device.pattern.take_turns()) {
    if (turn.after < frontier) {
      device.opened = false;
      continue;
    }
    const bool opening = !device.opened || turn.kind == TurnKind::kOpening;
    loop_of(index).add_turn(turn.after, opening, turn.kind == TurnKind::kEvaluation);
    device.opened = true;
  }
  if (device.pattern.state() == LaunchPattern::State::kLost) cut_windows(index, frontier);
  else device.window = kTimeMin;
}

// What is launched now is no iteration that is known: windows, until it is one again.
void Unmarked::cut_windows(Index index, TimePoint frontier) {
  Device& device = devices_[index];
  if (device.window == kTimeMin) device.window = std::max(frontier, fed_until_);
  const DurationNs length{std::max<std::int64_t>(1, options_.window.ns)};
  for (; device.window + length <= fed_until_; device.window += length)
    loop_of(index).add_turn(device.window + length, true, false);
  device.opened = false;
}

void Unmarked::decide(bool final) {
  const LaunchPattern* best = nullptr;
  for (const Device& device : devices_)
    if (best == nullptr || device.pattern.launches() > best->launches()) best = &device.pattern;
  const bool found = best != nullptr && best->state() == LaunchPattern::State::kFound;
  if (found) state_ = {PatternState::kFound, best->length(), best->evidence()};
  // The pattern that was found once is sought again in what has taken its place.
  else if (best != nullptr && best->state() == LaunchPattern::State::kLost) state_.stage = PatternState::kLost;
  const bool long_enough = in_.first != kTimeMax && in_.ticked - in_.first >= options_.pattern_patience;
  if (!found && (long_enough || in_.store.pending() > options_.pending_records_limit)) gave_up_ = true;
  if (!found && (gave_up_ || final) && state_.stage == PatternState::kLooking && best != nullptr) state_.stage = PatternState::kUndecided;
  waits_ = !found && !final;
}

std::string describe(const PatternState& state) {
  switch (state.stage) {
    case PatternState::kLooking: return {};
    case PatternState::kUndecided:
      return "no iteration is marked, and in the launches none is found that is beyond doubt: windows of a second "
             "instead (docs/iterations.md)";
    case PatternState::kLost:
      return "the launches are no longer those of the iterations that had been found: windows of a second until "
             "they are found again (docs/iterations.md)";
    case PatternState::kFound: break;
  }
  static constexpr std::array<std::string_view, 3> kKnownBy{
      "the optimizer's kernels that close each", "the long runs of few kernels that close each",
      "what opens each: a copy to the device, a pause of the host or a graph"};
  return fmt::format("iterations that nobody marked, found in the pattern of launches: about {} each, known by {} "
                     "(docs/iterations.md)",
                     state.launches, kKnownBy[static_cast<std::size_t>(state.evidence)]);
}

}  // namespace gpudiag
