// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// The one stage in front of the engine that decides which records cannot be believed. It marks them
// by record_flag and lets them through: the engine must know that something was there. What it
// marks, the engine counts in its Quality; defects that only the engine can see (orphan,
// no_operation, late, duplicate) are the engine's, those of a file (broken_event, truncated,
// repaired_text) the reader's.
#pragma once

#include "record/sink.hpp"
#include "timeline/quality.hpp"

namespace gpudiag {

/// The kDefective flags that `record` deserves: those it carries and those its times show.
/// `session` bounds what the session's clock may show. kUntimed and kIncomplete are for the source
/// to set, which sees the raw time stamps before any clock is converted.
std::uint16_t defects_of(const Record& record, Interval session);

/// Thread safety: as RecordSink.
class Sanitizer final : public RecordSink {
 public:
  explicit Sanitizer(RecordSink& next) : next_{next} {}

  /// Records that do not lie in `session` are of a foreign clock. A live source widens it as time
  /// goes by; without a call nothing is foreign.
  void set_session(Interval session) { session_ = session; }

  /// Passes on the record with its flags; where end and start contradict each other, as an instant;
  /// one of a foreign clock as an instant inside the session.
  void add(const Record& record) override;

  /// What this stage saw: one counter a defect. The engine counts the same records by their flags,
  /// so a report takes the engine's counts and not the sum of both.
  const Quality& seen() const { return seen_; }

 private:
  RecordSink& next_;
  Interval session_{kTimeMin, kTimeMax};
  Quality seen_;
};

}  // namespace gpudiag
