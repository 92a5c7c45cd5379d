// SPDX-License-Identifier: Apache-2.0
#include "attribution/device_ledger.hpp"

#include <algorithm>
#include <utility>

namespace gpudiag {
namespace {

// Windows until an answer counts: so many steps it takes at the most until a host that is faster has run
// ahead as far as it will (of a queue of 1,024 launches, the shortest steps aside).
constexpr std::uint32_t kSettled = 4;

// Of two parts of an iteration, what has been answered in both.
void add_answers(std::vector<WhatIf>& sum, const std::vector<WhatIf>& part) {
  std::erase_if(sum, [&](WhatIf& answer) {
    const auto same = std::find_if(part.begin(), part.end(), [&](const WhatIf& other) {
      return other.without == answer.without;
    });
    if (same == part.end()) return true;
    answer.saved += same->saved;
    return false;
  });
}

void add_causes(CauseTimes& to, const CauseTimes& from) {
  for (std::size_t c = 0; c < kCauseCount; ++c) to[c] += from[c];
}

void add_window(IterationLedger& sum, const IterationLedger& part) {
  sum.wall += part.wall;
  sum.compute += part.compute;
  sum.communication += part.communication;
  sum.copy += part.copy;
  sum.idle += part.idle;
  add_causes(sum.idle_by_cause, part.idle_by_cause);
  add_causes(sum.replay_cost, part.replay_cost);
  sum.replay_cost_communication += part.replay_cost_communication;
  sum.replay_cost_copy += part.replay_cost_copy;
  sum.replay_cost_all_host += part.replay_cost_all_host;
  add_answers(sum.what_if, part.what_if);
  sum.communication_total += part.communication_total;
  sum.copy_total += part.copy_total;
  sum.own += part.own;
  sum.launches += part.launches;
  sum.operations += part.operations;
  sum.opaque_graphs += part.opaque_graphs;
  for (std::size_t i = 0; i < sum.invalid.size(); ++i) sum.invalid[i] += part.invalid[i];
}

}  // namespace

// Copies of other chains go on beside the device's work.
bool DeviceLedger::counts(const Operation& operation, Ties& ties) const {
  return operation.device == device_ && (operation.type != OperationClass::kCopy ||
                                         ties.in_chain(device_, operation.stream));
}

void DeviceLedger::open(Replay& replay, Ties& ties, const Store& store) {
  for (const Index index : store.by_start) {
    const Operation& operation = store.operations[index];
    if (!counts(operation, ties)) continue;
    opened_ = true;
    boundary_ = charged_until_ = operation.start;
    fill(boundary_in_, operation.start.ns);
    if (operation.replayed) boundary_in_ = replay.operation(index).start_in;
    claims_.open(boundary_, boundary_in_);
    return;
  }
}

PendingWindow DeviceLedger::end_host_iteration(Replay& replay, Ties& ties, const Store& store) {
  Arrival last;
  std::uint64_t last_order = order_;
  for (Index stream = 0; stream < ties.streams(); ++stream) {
    if (ties.stream_device(stream) != device_ || !ties.in_chain(device_, stream)) continue;
    const StreamState& state = replay.stream(stream);
    if (state.order <= order_ || state.order < last_order) continue;
    if (state.order > last_order) last = state.tail;
    else join(last, state.tail);
    last_order = state.order;
  }
  PendingWindow window;
  if (!opened_ && last_order > order_) open(replay, ties, store);
  window.window = {boundary_, boundary_};
  if (opened_ && last_order > order_) {
    const Lanes before = boundary_in_;
    window.window.end = std::max(boundary_, TimePoint{last.at});
    for (std::size_t w = 0; w < kLaneCount; ++w)
      boundary_in_[w] = std::max(boundary_in_[w], last.in[w]);
    const auto saved = [&](std::size_t w) {
      return (window.window.end - boundary_) - DurationNs{boundary_in_[w] - before[w]};
    };
    IterationLedger& ledger = window.ledger;
    for (std::size_t c = 0; c < kCauseCount; ++c) ledger.replay_cost[c] = saved(c);
    ledger.replay_cost_all_host = saved(kAllHostWorld);
    ledger.replay_cost_communication = saved(kCommunicationWorld);
    ledger.replay_cost_copy = saved(kCopyWorld);
    for (std::size_t place = 0; place < kAskedWorlds; ++place)
      if (const Question& question = replay.worlds().asked(place);
          is_asked(question) && windows_asked_[place]++ >= kSettled)
        ledger.what_if.push_back({question, saved(kFirstAsked + place)});
    if (saved(kNullWorld) != DurationNs{})
      ++ledger.invalid[static_cast<std::size_t>(InvalidReason::kReplayMismatch)];
    boundary_ = window.window.end;
  }
  order_ = replay.launches();
  window.ledger.start = window.window.start;
  window.ledger.wall = window.window.length();
  return window;
}

void DeviceLedger::gather(Interval window, Ties& ties, const Store& store) {
  gathered_.clear();
  const auto belongs = [&](const Operation& operation) {
    return operation.end > window.start && counts(operation, ties);
  };
  for (const Index index : active_)
    if (belongs(store.operations[index])) gathered_.push_back(index);
  next_cursor_ = cursor_;
  while (next_cursor_ < store.by_start.size()) {
    const Index index = store.by_start[next_cursor_];
    const Operation& operation = store.operations[index];
    if (operation.start >= window.end) break;
    ++next_cursor_;
    if (belongs(operation)) gathered_.push_back(index);
  }
}

bool DeviceLedger::ready(Interval window, const Store& store) const {
  TimePoint busy_until = window.start;
  for (const Index index : gathered_) {
    const Operation& operation = store.operations[index];
    if (operation.start > busy_until && !operation.replayed) return false;
    busy_until = std::max(busy_until, operation.end);
  }
  return true;
}

void DeviceLedger::charge(const Gap& gap, PendingWindow& window, Replay& replay, Store& store,
                          const EngineOptions& options) {
  const OperationReplay* next = nullptr;
  const HostLine* line = nullptr;
  NameId name{};
  if (gap.next != kNone && store.operations[gap.next].replayed) {
    next = &replay.operation(gap.next);
    name = store.operations[gap.next].name;
    if (next->line != kNone) line = &replay.line(next->line);
    claims_.reach(gap, next->start_in);
  }
  divide(gap, next, name, claims_, line, options, window.ledger.idle_by_cause, window.evidence);
}

void DeviceLedger::sweep(PendingWindow& window, Replay& replay, Ties& ties, Store& store,
                         const EngineOptions& options) {
  WindowSweep busy(window.window);
  // Asked for growing places only, so what it has passed once it need not pass again: most operations
  // may be of other chains.
  std::size_t ahead = 0;
  const auto next_of_chain = [&](std::size_t from) {
    for (ahead = std::max(ahead, from); ahead < gathered_.size(); ++ahead)
      if (ties.in_chain(device_, store.operations[gathered_[ahead]].stream))
        return gathered_[ahead];
    return kNone;
  };
  for (std::size_t i = 0; i < gathered_.size(); ++i) {
    const Operation& operation = store.operations[gathered_[i]];
    const Interval idle = busy.begin(operation.type, operation.start, operation.end);
    if (!idle.empty())
      charge({idle.start, idle.end, next_of_chain(i)}, window, replay, store, options);
    if (operation.start >= claimed_until_ && operation.replayed &&
        ties.in_chain(device_, operation.stream))
      claims_.pass(replay.end_of(gathered_[i]));
    if (operation.kind == RecordKind::kGraph && operation.start >= window.window.start)
      ++window.ledger.opaque_graphs;
  }
  if (const Interval idle = busy.finish(); !idle.empty())
    charge({idle.start, idle.end, kNone}, window, replay, store, options);
  claimed_until_ = std::max(claimed_until_, window.window.end);
  const BusyTimes& times = busy.times();
  window.ledger.compute = times.compute;
  window.ledger.communication = times.communication;
  window.ledger.copy = times.copy;
  window.ledger.idle = times.idle;
  window.ledger.communication_total = times.communication_total;
  window.ledger.copy_total = times.copy_total;
}

bool DeviceLedger::close_front(Replay& replay, Ties& ties, Store& store,
                               const EngineOptions& options, const NameTable& names, bool force) {
  PendingWindow& window = pending_.front();
  if (!window.window.empty()) {
    gather(window.window, ties, store);
    if (!force && !ready(window.window, store)) return false;
    sweep(window, replay, ties, store, options);
    cursor_ = next_cursor_;
    active_.clear();
    for (const Index index : gathered_)
      if (store.operations[index].end > window.window.end) active_.push_back(index);
    charged_until_ = window.window.end;
  }
  sum_evidence_.merge(window.evidence);
  if (sum_open_) {
    IterationLedger header = std::move(sum_);
    add_window(header, window.ledger);
    header.host_step = window.ledger.host_step;
    header.label = window.ledger.label;
    header.index = window.ledger.index;
    header.partial = header.partial || window.ledger.partial;
    sum_ = std::move(header);
  } else {
    sum_ = window.ledger;
  }
  sum_open_ = closed_part_ = window.part;
  pending_.pop_front();
  if (closed_part_) return true;
  sum_.evidence = sum_evidence_.top(names);
  sum_.empty = sum_.operations == 0 && sum_.wall == DurationNs{};
  sum_evidence_.clear();
  finished_ = std::move(sum_);
  sum_ = IterationLedger{};
  return true;
}

}  // namespace gpudiag
