// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: what gpudiag itself costs, and what to give up when that is too much.
#pragma once

#include <cstdint>

#include "record/time.hpp"

namespace gpudiag {

/// Shares of host time over windows of five seconds: our time on the job's threads, and our own
/// thread's processor time divided by the processors there are (it runs beside the job as long as one
/// is free). Two windows above the budget are one step down; there is no way back up, because the
/// steps disturb the records. Pure arithmetic.
class Budget {
 public:
  enum class Step : std::uint8_t { kNone, kDropDriverCalls, kDropRanges, kNothingLeft };

  Budget(double percent, unsigned processors) : share_{percent / 100.0}, processors_{processors == 0 ? 1 : processors} {}

  /// `own` and `drain` are totals since the start. The step to take now, mostly kNone.
  Step update(TimePoint at, DurationNs own, DurationNs drain);
  /// Of the last whole window, 0 to 1.
  double last_share() const { return last_share_; }

 private:
  static constexpr DurationNs kWindow = seconds(5);

  double share_;
  unsigned processors_;
  TimePoint window_start_ = kTimeMin;
  DurationNs own_before_;
  DurationNs drain_before_;
  int windows_above_ = 0;
  Step taken_ = Step::kNone;
  double last_share_ = 0;
};

}  // namespace gpudiag
