// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Whether, at which threads and how often the watcher looks. Pure: times and ledgers in, a plan out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "attribution/ledger.hpp"
#include "record/ids.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// A gap whose host time is shorter than this is not looked at: looks would have to come so often that
/// they cost more than they tell.
inline constexpr DurationNs kLongGap = milliseconds(4);
/// Looks into gaps follow each other no faster and no slower than this.
inline constexpr DurationNs kShortestPeriod = milliseconds(3);
inline constexpr DurationNs kLongestPeriod = milliseconds(50);

struct Watched {
  ThreadId thread{};
  DurationNs period;
  TimePoint until;
};

class WatchPlan {
 public:
  /// A CUDA call of the job, in any order. Nanoseconds: there may be very many.
  void call(ThreadId thread, Interval time) {
    if (!busy_.empty()) {
      Busy& last = busy_.back();
      if (last.thread == thread && time.start >= last.time.start && time.start - last.time.end < kLongGap) {
        last.time.end = std::max(last.time.end, time.end);
        return;
      }
    }
    if (busy_.size() < kBusyKept) busy_.push_back({time, thread});
  }
  /// A ledger that has just been closed: where it shows long gaps, the next ones are looked into.
  void iteration(const IterationLedger& ledger, TimePoint at);
  /// All calls up to about `at` are known. As long as no ledger is, silences between calls stand for
  /// its gaps. Where there has been no call for long, the thread of the last one is looked at.
  void tick(TimePoint at);

  const std::vector<Watched>& watched() const { return watched_; }
  /// Somebody waits for data, or nobody knows for what: then workers matter.
  bool workers_wanted(TimePoint at) const { return at < workers_until_; }
  /// How soon to look; nothing: not at all.
  std::optional<DurationNs> period() const;

 private:
  /// Calls of one thread that follow each other without a long gap.
  struct Busy {
    Interval time;
    ThreadId thread{};
  };
  static constexpr std::size_t kBusyKept = 4096;

  void watch(ThreadId thread, DurationNs period, TimePoint until);
  void find_silences(TimePoint at);
  void follow_silence(TimePoint at);

  std::vector<Busy> busy_;             ///< since the last tick
  TimePoint ticked_ = kTimeMin;
  TimePoint silent_at_ = kTimeMin;     ///< when a tick last showed long silences
  TimePoint ledger_at_ = kTimeMin;     ///< when the last one was closed

  std::vector<Watched> watched_;
  TimePoint workers_until_ = kTimeMin;
  TimePoint last_call_ = kTimeMin;
  ThreadId last_thread_{};
};

}  // namespace gpudiag
