// SPDX-License-Identifier: Apache-2.0
#include "attribution/outstanding.hpp"

#include <algorithm>

namespace gpudiag {
namespace {

// Bounds memory: a graph a millisecond for as long as operations are waited for, six times over.
constexpr std::size_t kUnfinishedKept = 65'536;

bool is_copy(ApiClass api) {
  return api == ApiClass::kMemcpy || api == ApiClass::kMemcpyAsync || api == ApiClass::kMemset;
}

}  // namespace

bool Outstanding::lacks_operation(const Call& call, TimePoint copies_until) const {
  if (call.first_operation != kNone || call.nested || call.capturing || call.defective) return false;
  if ((call.flags & record_flag::kFailed) != 0) return false;
  if (is_launch(call.api)) return true;
  if (!is_copy(call.api)) return false;
  // A call that copies nothing never has an operation. One that waits in a long queue does: as long as
  // the device works and nothing that the thread launched later has run, it may be such a one.
  return call.start >= copies_until ||
         (last_operation_ > in_.ticked - kPatience && call.start > joined_until_[call.thread]);
}

bool Outstanding::complete(std::size_t first, TimePoint until) const {
  const TimePoint copies_until = in_.ticked - kPatience;
  for (std::size_t i = first; i < in_.store.calls.size(); ++i) {
    const Call& call = in_.store.calls[i];
    if (call.start >= until) break;
    if (lacks_operation(call, copies_until)) return false;
  }
  return true;
}

void Outstanding::note_progress() {
  joined_until_.resize(std::max<std::size_t>(joined_until_.size(), in_.ties.threads()), kTimeMin);
  for (const Call& call : in_.store.calls)
    if (call.first_operation != kNone)
      joined_until_[call.thread] = std::max(joined_until_[call.thread], call.start);
  for (const Operation& operation : in_.store.operations)
    last_operation_ = std::max(last_operation_, operation.end);
}

// The nodes of a graph come as they end, however long it runs; a copy may have been given up too soon.
void Outstanding::remember(std::size_t calls) {
  std::erase_if(unfinished_, [&](const auto& known) {
    return known.second + options_.give_up_after <= in_.ticked;
  });
  for (std::size_t i = 0; i < calls && unfinished_.size() < kUnfinishedKept; ++i) {
    const Call& call = in_.store.calls[i];
    if (call.correlation == kNoCorrelation) continue;
    if (call.api == ApiClass::kGraphLaunch || (is_copy(call.api) && call.first_operation == kNone))
      unfinished_[raw(call.correlation)] = in_.ticked;
  }
}

}  // namespace gpudiag
