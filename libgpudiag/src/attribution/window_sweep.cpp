// SPDX-License-Identifier: Apache-2.0
#include "attribution/window_sweep.hpp"

#include <algorithm>

namespace gpudiag {

WindowSweep::WindowSweep(Interval window)
    : window_(window),
      cursor_(window.start),
      compute_until_(window.start),
      communication_until_(window.start),
      copy_until_(window.start) {}

// Everything that began so far is in the three frontiers, so up to `t` each state lasts as long as
// its frontier reaches.
Interval WindowSweep::advance_to(TimePoint t) {
  TimePoint from = cursor_;
  const auto take = [&](TimePoint until, DurationNs& state) {
    until = std::min(until, t);
    if (until <= from) return;
    state += until - from;
    from = until;
  };
  take(compute_until_, times_.compute);
  take(communication_until_, times_.communication);
  take(copy_until_, times_.copy);
  const Interval idle{from, std::max(from, t)};
  times_.idle += idle.length();
  cursor_ = std::max(cursor_, t);
  return idle;
}

Interval WindowSweep::begin(OperationClass type, TimePoint start, TimePoint end) {
  start = std::max(start, cursor_);
  end = std::min(end, window_.end);
  if (end <= start) return {cursor_, cursor_};
  const Interval idle = advance_to(start);
  const auto extend = [&](TimePoint& until, DurationNs& total) {
    total += Interval{std::max(start, until), end}.length();
    until = std::max(until, end);
  };
  DurationNs ignored;
  switch (type) {
    case OperationClass::kCompute: extend(compute_until_, ignored); break;
    case OperationClass::kCommunication:
      extend(communication_until_, times_.communication_total);
      break;
    case OperationClass::kCopy: extend(copy_until_, times_.copy_total); break;
  }
  return idle;
}

Interval WindowSweep::finish() { return advance_to(window_.end); }

}  // namespace gpudiag
