// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Whether, at which threads and how often the watcher looks. Pure: times and ledgers in, a plan out.
#pragma once

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
  /// A CUDA call of the job.
  void call(ThreadId thread, TimePoint end) {
    if (end <= last_call_) return;
    last_call_ = end;
    last_thread_ = thread;
  }
  /// A ledger that has just been closed: where it shows long gaps, the next ones are looked into.
  void iteration(const IterationLedger& ledger, TimePoint at);
  /// All calls up to about `at` are known: where there has been none for long, the thread of the last
  /// one is looked at.
  void tick(TimePoint at);

  const std::vector<Watched>& watched() const { return watched_; }
  /// Somebody waits for data, or nobody knows for what: then workers matter.
  bool workers_wanted(TimePoint at) const { return at < workers_until_; }
  /// How soon to look; nothing: not at all.
  std::optional<DurationNs> period() const;

 private:
  void watch(ThreadId thread, DurationNs period, TimePoint until);

  std::vector<Watched> watched_;
  TimePoint workers_until_ = kTimeMin;
  TimePoint last_call_ = kTimeMin;
  ThreadId last_thread_{};
};

}  // namespace gpudiag
