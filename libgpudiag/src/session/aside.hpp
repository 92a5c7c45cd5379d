// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: time in which CUPTI is another profiler's.
// Account of when this session stood aside, for whom and for how long.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "record/time.hpp"

namespace gpudiag {

/// The other profiler's name where nobody told it.
inline constexpr std::string_view kSomebody = "another profiler";

/// Pure. Drain thread.
class Aside {
 public:
  bool open() const { return open_; }
  /// It was asked for, and ends when it is asked to; otherwise it was noticed.
  bool asked_for() const { return open_ && asked_for_; }
  const std::string& who() const { return who_; }

  /// Nothing is recorded from `at` on. An open one goes on under the new name.
  void begin(TimePoint at, std::string_view who, bool asked_for);
  /// What has passed since the last piece, or the begin, up to `until`: not recorded. Empty where
  /// nothing is open.
  Interval take_piece(TimePoint until);
  /// Records come again from `at` on. Returns for how long they did not.
  DurationNs end(TimePoint at);

  std::uint64_t times() const { return times_; }
  /// Up to now, over all times.
  DurationNs total(TimePoint now) const { return open_ ? total_ + (now - began_) : total_; }

 private:
  bool open_ = false;
  bool asked_for_ = false;
  std::string who_;
  TimePoint began_;
  TimePoint told_until_;
  std::uint64_t times_ = 0;
  DurationNs total_;
};

/// "stood aside for torch.profiler for 1.24 s: the iterations of that time have no ledger".
std::string say_stood_aside(std::string_view who, DurationNs length);

/// Notices that the records have gone to somebody else: the job goes on and none come. Pure.
class TakeoverWatch {
 public:
  /// The job itself has ended an iteration.
  void mark() { ++marks_; }
  /// CUPTI's clock is another one since the last update: profilers do that, and before they take the buffers.
  void clock_exchanged();
  /// `records` grows with each sign that CUPTI works for us. True, once, where it is time to say that they are gone.
  bool update(TimePoint at, std::uint64_t records);
  /// Everything that ended before this has come, as far as can be seen: while the job goes on without
  /// records, when the last one came.
  TimePoint trusted_until() const;
  void reset() { *this = TakeoverWatch{}; }

 private:
  bool goes_on() const;

  std::optional<TimePoint> last_record_;
  std::uint64_t records_ = 0;
  std::uint64_t marks_ = 0;  // since the last record
  bool clock_exchanged_ = false;
  int updates_with_records_ = 0;  // since then
  bool told_ = false;
};

}  // namespace gpudiag
