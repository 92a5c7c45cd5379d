// SPDX-License-Identifier: Apache-2.0
// The engine's way through the records: calls and operations replayed in order, windows closed behind.
#include <algorithm>

#include "attribution/engine_impl.hpp"

namespace gpudiag {

void Engine::Impl::replay_until(TimePoint until, bool final) {
  const Store& store = in_.store;
  for (; next_call_ < store.calls.size(); ++next_call_) {
    const Call& call = store.calls[next_call_];
    if (call.start >= until && until != kTimeMax) break;
    replay_orphans_until(call.start, final);
    replay_.replay_call(static_cast<Index>(next_call_));
    count_call(call);
  }
  replay_orphans_until(until, final);
  frontier_ = std::max(frontier_, until);
  const std::uint64_t mismatches = replay_.mismatches();
  for (Followed& device : devices_) device.mismatches = mismatches;
}

void Engine::Impl::replay_orphans_until(TimePoint until, bool final) {
  const Store& store = in_.store;
  for (; next_orphan_ < store.by_start.size(); ++next_orphan_) {
    const Index index = store.by_start[next_orphan_];
    const Operation& operation = store.operations[index];
    if (operation.start >= until) break;
    if (operation.replayed || operation.call != kNone) continue;
    if (!final && operation.end + kPatience > in_.ticked) continue;
    if (!queued_before_tracing(operation) && !outstanding_.remembers(operation.correlation))
      ++in_.quality[Defect::kOrphan];
    replay_.replay_orphan(index);
    ++devices_[operation.device].operations;
  }
}

// Tracing begins while the device works off what was launched before: such an operation comes before
// all of its stream whose launches were seen. That nobody saw its launch is no defect.
bool Engine::Impl::queued_before_tracing(const Operation& operation) {
  if (in_.first_call == kTimeMax) return false;
  if (operation.start >= replay_.stream(operation.stream).first_launched) return false;
  return operation.start < in_.first_call || raw(operation.correlation) < in_.first_correlation;
}

void Engine::Impl::count_call(const Call& call) {
  if (call.first_operation != kNone) {
    ++devices_[in_.store.operations[call.first_operation].device].launches;
    for (Index i = call.first_operation; i != kNone; i = in_.store.operations[i].next)
      ++devices_[in_.store.operations[i].device].operations;
    return;
  }
  if (!is_launch(call.api) || !outstanding_.lacks_operation(call, kTimeMax)) return;
  ++in_.quality[Defect::kNoOperation];
  const Index line = in_.ties.line_of(call.thread);
  for (Index device = 0; device < devices_.size(); ++device)
    if (in_.ties.line_in_chain(device, line)) ++devices_[device].missing;
}

void Engine::Impl::close_windows(bool force) {
  for (Index index = 0; index < devices_.size(); ++index) {
    DeviceLedger& device = devices_[index].ledger;
    while (!device.pending().empty()) {
      const PendingWindow& window = device.pending().front();
      const bool late = force || in_.ticked >= window.window.end + options_.give_up_after;
      if (!force && !may_close(window, index)) break;
      if (!device.close_front(replay_, in_.ties, in_.store, options_, names_, late)) break;
      if (!device.closed_part()) on_iteration_(device.finished());
    }
  }
}

bool Engine::Impl::may_close(const PendingWindow& window, Index device) const {
  const TimePoint end = window.window.end;
  if (in_.ticked >= end + kPatience) return true;
  if (in_.ticked < end) return false;
  // A launch that has no operation yet may have put one on another stream that reaches back here.
  std::size_t streams = 0;
  for (Index stream = 0; stream < in_.ties.streams(); ++stream)
    streams += in_.ties.stream_device(stream) == device ? 1 : 0;
  if (streams <= 1) return true;
  for (std::size_t i = next_call_; i < in_.store.calls.size(); ++i) {
    const Call& call = in_.store.calls[i];
    if (call.start >= end) break;
    if (outstanding_.lacks_operation(call, kBeforeAll)) return false;
  }
  return true;
}

// A very long iteration is charged in parts, so that memory stays bounded; what is complete goes.
void Engine::Impl::split_long_iteration() {
  const auto& calls = in_.store.calls;
  if (in_.store.pending() <= options_.pending_records_limit || in_.ticked == kBeforeAll) return;
  const bool forced = in_.store.pending() > 2 * options_.pending_records_limit;
  TimePoint cut = in_.ticked;
  for (std::size_t i = next_call_; i < calls.size() && calls[i].start < cut && !forced; ++i)
    if (outstanding_.lacks_operation(calls[i], kBeforeAll)) cut = calls[i].start;
  for (const Loop& loop : in_.loops)
    if (loop.next() != nullptr) cut = std::min(cut, loop.next()->at);
  if (next_call_ >= calls.size() || calls[next_call_].start >= cut) return;
  replay_until(cut, false);
  for (Followed& device : devices_) end_part(device);
  reset_lines(kTimeMin);
  close_windows(forced);
}

}  // namespace gpudiag
