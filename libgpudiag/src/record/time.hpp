// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// Time as every later stage sees it: signed 64-bit nanoseconds on one session clock.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

namespace gpudiag {

/// A length of time in nanoseconds; negative where a difference may be.
struct DurationNs {
  std::int64_t ns = 0;

  constexpr auto operator<=>(const DurationNs&) const = default;
  constexpr DurationNs operator-() const { return {-ns}; }
  constexpr DurationNs& operator+=(DurationNs d) { ns += d.ns; return *this; }
  constexpr DurationNs& operator-=(DurationNs d) { ns -= d.ns; return *this; }
  friend constexpr DurationNs operator+(DurationNs a, DurationNs b) { return {a.ns + b.ns}; }
  friend constexpr DurationNs operator-(DurationNs a, DurationNs b) { return {a.ns - b.ns}; }
};

constexpr DurationNs microseconds(std::int64_t us) { return {us * 1000}; }
constexpr DurationNs milliseconds(std::int64_t ms) { return {ms * 1'000'000}; }
constexpr DurationNs seconds(std::int64_t s) { return {s * 1'000'000'000}; }

/// An instant: nanoseconds since the session clock's origin. Clocks are converted once, where a
/// record enters; nothing after that point compares times of different clocks.
struct TimePoint {
  std::int64_t ns = 0;

  constexpr auto operator<=>(const TimePoint&) const = default;
  constexpr TimePoint& operator+=(DurationNs d) { ns += d.ns; return *this; }
  constexpr TimePoint& operator-=(DurationNs d) { ns -= d.ns; return *this; }
  friend constexpr TimePoint operator+(TimePoint t, DurationNs d) { return {t.ns + d.ns}; }
  friend constexpr TimePoint operator-(TimePoint t, DurationNs d) { return {t.ns - d.ns}; }
  friend constexpr DurationNs operator-(TimePoint a, TimePoint b) { return {a.ns - b.ns}; }
};

inline constexpr TimePoint kTimeMin{std::numeric_limits<std::int64_t>::min()};
inline constexpr TimePoint kTimeMax{std::numeric_limits<std::int64_t>::max()};

/// Half-open [start, end). Empty when end <= start.
struct Interval {
  TimePoint start;
  TimePoint end;

  constexpr bool operator==(const Interval&) const = default;
  constexpr bool empty() const { return end <= start; }
  constexpr DurationNs length() const { return empty() ? DurationNs{} : end - start; }
  constexpr bool contains(TimePoint t) const { return start <= t && t < end; }
  constexpr Interval clipped_to(Interval window) const {
    return {std::max(start, window.start), std::min(end, window.end)};
  }
};

}  // namespace gpudiag
