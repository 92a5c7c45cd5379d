// SPDX-License-Identifier: Apache-2.0
#include "sources/sanitizer.hpp"

#include <algorithm>

namespace gpudiag {
namespace {

/// Ticks and losses tell of the stream of records, not of something that happened in the job.
bool tells_of_the_job(RecordKind kind) {
  return kind != RecordKind::kTick && kind != RecordKind::kLost && kind != RecordKind::kGap;
}

}  // namespace

std::uint16_t defects_of(const Record& record, Interval session) {
  using namespace record_flag;
  auto flags = static_cast<std::uint16_t>(record.flags & kDefective);
  if ((flags & kUntimed) != 0) return flags;  // its times say nothing
  if (record.start < session.start || record.start > session.end) flags |= kForeignClock;
  if ((flags & kIncomplete) != 0) return flags;
  if (record.end < record.start) flags |= kNegative;
  if (record.end > session.end) flags |= kForeignClock;
  return flags;
}

void Sanitizer::add(const Record& record) {
  if (!tells_of_the_job(record.kind)) {
    next_.add(record);
    return;
  }
  ++seen_.records;
  const std::uint16_t defects = defects_of(record, session_);
  if (defects == 0) {
    next_.add(record);
    return;
  }
  if ((defects & record_flag::kUntimed) != 0) ++seen_[Defect::kUntimed];
  if ((defects & record_flag::kNegative) != 0) ++seen_[Defect::kNegative];
  if ((defects & record_flag::kForeignClock) != 0) ++seen_[Defect::kForeignClock];
  if ((defects & record_flag::kIncomplete) != 0) ++seen_[Defect::kIncomplete];
  Record marked = record;
  marked.flags |= defects;
  if ((defects & record_flag::kForeignClock) != 0) {
    // A time of another clock says nothing, but may be so far off that arithmetic with it
    // overflows.
    marked.start = marked.end = std::clamp(record.start, session_.start, session_.end);
  }
  if (marked.end < marked.start) marked.end = marked.start;
  next_.add(marked);
}

}  // namespace gpudiag
