// SPDX-License-Identifier: Apache-2.0
#include "timeline/store.hpp"

#include <algorithm>
#include <bit>
#include <string_view>
#include <tuple>
#include <utility>

namespace gpudiag {
namespace {

bool call_before(const Call& a, const Call& b) {
  return std::tie(a.start, b.end, a.correlation, a.api) <
         std::tie(b.start, a.end, b.correlation, b.api);
}

bool operation_before(const Operation& a, const Operation& b) {
  return std::tie(a.start, a.end, a.correlation, a.stream, a.name) <
         std::tie(b.start, b.end, b.correlation, b.stream, b.name);
}

std::size_t hash_of(CorrelationId id) {
  return static_cast<std::size_t>((raw(id) * std::uint64_t{0x9e3779b97f4a7c15}) >> 20);
}

}  // namespace

void Store::sort_calls() {
  if (std::is_sorted(calls.begin(), calls.end(), call_before)) return;
  keys_.clear();
  for (Index i = 0; i < calls.size(); ++i) keys_.emplace_back(calls[i].start.ns, i);
  std::sort(keys_.begin(), keys_.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : call_before(calls[a.second], calls[b.second]);
  });
  sorted_calls_.clear();
  sorted_calls_.reserve(calls.size());
  for (const auto& [start, index] : keys_) sorted_calls_.push_back(calls[index]);
  calls.swap(sorted_calls_);
}

void Store::fold_nested_calls() {
  outer_.resize(calls.size());
  last_of_thread_.assign(last_of_thread_.size(), kNone);
  for (Index i = 0; i < calls.size(); ++i) {
    Call& call = calls[i];
    call.first_operation = call.sync = call.event_record = kNone;
    call.nested = false;
    outer_[i] = i;
    if (call.thread >= last_of_thread_.size()) last_of_thread_.resize(call.thread + 1, kNone);
    Index& last = last_of_thread_[call.thread];
    if (last != kNone && call.end <= calls[last].end && call.start < calls[last].end) {
      call.nested = true;
      outer_[i] = last;
      if (calls[last].api == ApiClass::kOther) calls[last].api = call.api;
      continue;
    }
    last = i;
  }
}

namespace {

// Begin and end of a capture alternate on a thread.
void pass_capture(std::vector<bool>& capturing, const Call& call) {
  if (call.api != ApiClass::kCapture || call.nested || (call.flags & record_flag::kFailed) != 0)
    return;
  if (call.thread >= capturing.size()) capturing.resize(call.thread + 1, false);
  capturing[call.thread] = !capturing[call.thread];
}

}  // namespace

// A capture takes in the launches of every thread that works for it (autograd's too), so while one
// is open anywhere no launch is expected to run.
void Store::mark_captures() {
  std::vector<bool> capturing = capturing_;
  auto open = std::count(capturing.begin(), capturing.end(), true);
  for (Call& call : calls) {
    if (call.api == ApiClass::kCapture) {
      pass_capture(capturing, call);
      open = std::count(capturing.begin(), capturing.end(), true);
    }
    call.capturing = open > 0;
  }
}

void Store::keep_capture_state(Index first_kept) {
  for (Index i = 0; i < first_kept; ++i) pass_capture(capturing_, calls[i]);
}

void Store::build_join() {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(16, calls.size() * 2));
  slots_.assign(size, Slot{});
  for (Index i = 0; i < calls.size(); ++i) {
    if (calls[i].correlation == kNoCorrelation) continue;
    std::size_t at = hash_of(calls[i].correlation) & (size - 1);
    while (slots_[at].call != kNone && slots_[at].correlation != calls[i].correlation)
      at = (at + 1) & (size - 1);
    if (slots_[at].call == kNone) slots_[at] = {calls[i].correlation, outer_[i]};
  }
}

Index Store::find(CorrelationId correlation) const {
  if (correlation == kNoCorrelation || slots_.empty()) return kNone;
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_of(correlation) & mask;
  while (slots_[at].call != kNone && slots_[at].correlation != correlation) at = (at + 1) & mask;
  return slots_[at].call;
}

void Store::sort_operations() {
  keys_.clear();
  for (Index i = 0; i < operations.size(); ++i)
    if (!operations[i].duplicate) keys_.emplace_back(operations[i].start.ns, i);
  const auto before = [&](const auto& a, const auto& b) {
    return a.first != b.first
               ? a.first < b.first
               : operation_before(operations[a.second], operations[b.second]);
  };
  if (!std::is_sorted(keys_.begin(), keys_.end(), before))
    std::sort(keys_.begin(), keys_.end(), before);
  by_start.clear();
  for (const auto& [start, index] : keys_) by_start.push_back(index);
}

std::uint64_t Store::join_operations() {
  std::uint64_t duplicates = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < by_start.size(); ++i) {
    Operation& operation = operations[by_start[i]];
    if (kept > 0 && operation.correlation != kNoCorrelation) {
      const Operation& previous = operations[by_start[kept - 1]];
      operation.duplicate = previous.correlation == operation.correlation &&
                            previous.stream == operation.stream &&
                            previous.start == operation.start && previous.end == operation.end &&
                            previous.name == operation.name;
    }
    if (operation.duplicate) ++duplicates;
    else by_start[kept++] = by_start[i];
  }
  by_start.resize(kept);
  for (std::size_t i = by_start.size(); i-- > 0;) {
    Operation& operation = operations[by_start[i]];
    operation.call = operation.replayed ? kNone : find(operation.correlation);
    if (operation.call == kNone) continue;
    Call& call = calls[operation.call];
    operation.next = call.first_operation;
    call.first_operation = by_start[i];
  }
  return duplicates;
}

// Where several records carry one id the choice must not hang on the order of delivery.
void Store::join_syncs() {
  const auto before = [](const SyncPoint& a, const SyncPoint& b) {
    return std::tie(a.end, a.event, a.record_correlation, a.kind, a.correlation) <
           std::tie(b.end, b.event, b.record_correlation, b.kind, b.correlation);
  };
  for (auto* points : {&syncs, &event_records})
    if (!std::is_sorted(points->begin(), points->end(), before))
      std::sort(points->begin(), points->end(), before);
  for (Index i = 0; i < syncs.size(); ++i)
    if (const Index call = find(syncs[i].correlation); call != kNone) calls[call].sync = i;
  for (Index i = 0; i < event_records.size(); ++i)
    if (const Index call = find(event_records[i].correlation); call != kNone)
      calls[call].event_record = i;
}

void Store::join_defects() {
  for (Defective& defect : defects) {
    if (!defect.operation) continue;
    const Index call = find(defect.correlation);
    if (call == kNone) continue;
    calls[call].defective = true;
    defect.at = calls[call].start;
  }
}

std::uint64_t Store::prepare() {
  sort_calls();
  fold_nested_calls();
  mark_captures();
  build_join();
  sort_operations();
  const std::uint64_t duplicates = join_operations();
  join_syncs();
  join_defects();
  return duplicates;
}

}  // namespace gpudiag
