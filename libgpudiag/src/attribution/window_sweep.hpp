// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What a device did at each instant of a window (attribution.md, section 2): compute, else
// communication, else copy, else idle.
#pragma once

#include <vector>

#include "record/time.hpp"
#include "timeline/operation_class.hpp"
#include "timeline/store.hpp"

namespace gpudiag {

struct BusyTimes {
  DurationNs compute;
  DurationNs communication;
  DurationNs copy;
  DurationNs idle;
  DurationNs communication_total;  ///< union, exposed or not
  DurationNs copy_total;
};

/// One pass over the operations of a window in order of start; linear, no allocation.
class WindowSweep {
 public:
  explicit WindowSweep(Interval window);

  /// The next operation by start, clipped to the window by the sweep. Returns the idle stretch that
  /// it ends, empty where there is none.
  Interval begin(OperationClass type, TimePoint start, TimePoint end);
  /// Returns the idle stretch at the window's end.
  Interval finish();
  const BusyTimes& times() const { return times_; }

 private:
  Interval advance_to(TimePoint t);

  Interval window_;
  TimePoint cursor_;
  TimePoint compute_until_, communication_until_, copy_until_;
  BusyTimes times_;
};

}  // namespace gpudiag
