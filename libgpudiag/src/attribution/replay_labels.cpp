// SPDX-License-Identifier: Apache-2.0
// What a call is: its cause and sub-cause, and whether a copy holds it up.
#include <algorithm>
#include <utility>

#include "attribution/replay.hpp"

namespace gpudiag {

// The copy a call asked for, if it can hold up who waits for it: a few bytes that are read back are a
// value that is looked at, whatever the memory they come into.
HoldingCopy Replay::copy_of(const Call& call) const {
  if (call.first_operation == kNone) return {};
  const Operation& copy = store_.operations[call.first_operation];
  if (copy.kind != RecordKind::kMemcpy || is_read_back(copy)) return {};
  return {copy.copy, (copy.flags & record_flag::kPageable) != 0, call.name, copy.bytes, false};
}

// A framework that copies pageable memory waits for the copy at once: it is the copy that holds it up,
// not the call it waits in. Such a copy follows nothing but look-ups since its own call.
HoldingCopy Replay::copy_behind(const Call& wait) {
  HoldingCopy& copied = threads_[wait.thread].copied;
  if (wait.api == ApiClass::kOther || wait.api == ApiClass::kQuery) return {};
  return std::exchange(copied, HoldingCopy{});
}

// A few bytes read back and waited for at once are a value that the host looks at: `.item()` and its
// like, where no operator range says so.
bool Replay::value_behind(const Call& wait) {
  if (wait.api == ApiClass::kOther || wait.api == ApiClass::kQuery) return false;
  return std::exchange(threads_[wait.thread].read_back, false);
}

CallLabel Replay::label_of(const Call& call, CopyWait copy) {
  const ThreadLabels& labels = labels_[call.thread];
  CallLabel own = label_of_call(call.api, call.end - call.start, copy != CopyWait::kNoWait, options_);
  const HoldingCopy before = copy_behind(call);
  if (value_behind(call) && own.sub_cause == SubCause::kStreamSync) own.sub_cause = SubCause::kItem;
  if (own.sub_cause == SubCause::kBlockingCopy) own.copy = copy_of(call);
  if (own.sub_cause == SubCause::kStreamSync && before.kind != CopyKind::kUnknown)
    own = {own.cause, SubCause::kBlockingCopy, before};
  // A caching allocator answers a failure by freeing its caches and trying again.
  if (own.sub_cause == SubCause::kDeviceMalloc && (call.flags & record_flag::kFailed) != 0)
    own.sub_cause = SubCause::kAllocatorRetry;
  if (labels.empty()) return own;
  if (const auto* owner = ThreadLabels::at(labels.owners(), call.start))
    return {owner->label.cause, owner->label.sub_cause};
  const auto* weak = ThreadLabels::at(labels.weak(), call.start);
  if (weak != nullptr && (own.cause == Cause::kLaunchOverhead || own.cause == weak->label.cause))
    return {weak->label.cause, weak->label.sub_cause};
  return own;
}

// A copy of pageable memory, or a synchronous one, that was under way while its call ran held the
// call up, if only by staging; where it was done by then the call waited for it.
Replay::CopyWait Replay::copy_wait(const Call& call) const {
  if (call.first_operation == kNone) return CopyWait::kNoWait;
  const Operation& operation = store_.operations[call.first_operation];
  const bool may_block =
      call.api == ApiClass::kMemcpy ||
      (call.api == ApiClass::kMemcpyAsync && (operation.flags & record_flag::kPageable) != 0);
  if (operation.kind != RecordKind::kMemcpy || !may_block) return CopyWait::kNoWait;
  if (operation.end <= call.end) return CopyWait::kUntilDone;
  return operation.start < call.end ? CopyWait::kWhileStaged : CopyWait::kNoWait;
}

// A few bytes read back and waited for at once: `.item()` where no operator range says so.
bool Replay::is_item_copy(Index call_index) const {
  constexpr Index kLookedAhead = 8;
  const Call& copy = store_.calls[call_index];
  const auto end = std::min<std::size_t>(store_.calls.size(), call_index + std::size_t{1} + kLookedAhead);
  for (std::size_t next = call_index + std::size_t{1}; next < end; ++next) {
    const Call& call = store_.calls[next];
    if (call.thread == copy.thread && !call.nested) return call.api == ApiClass::kStreamSync;
  }
  return false;
}

WorldMask Replay::worlds_without_copy(Index call_index, const Operation& copy, bool blocked) const {
  if (copy.copy != CopyKind::kDeviceToHost) return 0;
  const Call& call = store_.calls[call_index];
  const ThreadLabels& labels = labels_[call.thread];
  if (const auto* owner = ThreadLabels::at(labels.owners(), call.start))
    return worlds_.without(owner->label.cause, owner->label.sub_cause);
  const auto* weak = ThreadLabels::at(labels.weak(), call.start);
  const bool item = weak != nullptr && weak->label.cause == Cause::kSync;
  if (blocked || item || (copy.bytes <= kItemBytes && is_item_copy(call_index)))
    return worlds_.without(Cause::kSync, blocked ? SubCause::kBlockingCopy : SubCause::kItem);
  return 0;
}

}  // namespace gpudiag
