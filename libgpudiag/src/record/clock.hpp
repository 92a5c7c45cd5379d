// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// From a tracer's clock to the session's. Pure arithmetic on anchors; whoever owns the clocks reads
// them. Two clocks drift against each other, and CUPTI's default one (CLOCK_REALTIME) also steps, so
// anchors are taken all the time and a timestamp is converted by the two around it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "record/time.hpp"

namespace gpudiag {

/// One reading of the foreign clock between two of the session clock.
struct ClockAnchor {
  std::int64_t foreign_ns = 0;
  TimePoint before;
  TimePoint after;

  constexpr DurationNs width() const { return after - before; }
};

/// A clock that counts no nanoseconds (a cycle counter, say) as one that does.
struct ClockUnit {
  std::int64_t origin = 0;  ///< a reading near those to come, so that products stay exact
  double ns = 1.0;          ///< of one count

  constexpr bool is_ns() const { return ns == 1.0; }
  /// Grows with `count`.
  std::int64_t to_ns(std::int64_t count) const;
};

/// Not thread-safe: the drain thread owns it.
class ClockMap {
 public:
  ClockMap() = default;
  /// Anchors and timestamps count in `unit`, known to 0.05 %; the anchors do the rest.
  explicit ClockMap(ClockUnit unit) : unit_{unit} {}

  struct Converted {
    TimePoint time;
    bool certain = true;  ///< false: the foreign clock stepped around this time
  };

  /// Anchors must come in the order of session time. A wide one (the reader was preempted) is left
  /// out while a narrow one is fresh. Timestamps older than the anchors kept (64, some 13 s) use the
  /// oldest.
  void add(const ClockAnchor& anchor);

  /// Continuous and growing between steps, so that the order of records survives. Before the first
  /// anchor the identity.
  Converted to_session(std::int64_t foreign) const;

  /// From now on no time that is converted counts as certain: these are not the anchors' clock.
  void distrust() { trusted_ = false; }

  /// Times at which the foreign clock jumped.
  std::uint64_t steps() const { return steps_; }
  bool empty() const { return count_ == 0; }

 private:
  struct Knot {
    std::int64_t foreign_ns = 0;
    std::int64_t session_ns = 0;
    std::int64_t width_ns = 0;
    bool after_step = false;  ///< the clock jumped between the knot before and this one

    constexpr std::int64_t offset() const { return session_ns - foreign_ns; }
  };

  const Knot& knot(std::size_t age) const { return knots_[(count_ - 1 - age) % kKept]; }
  static TimePoint between(const Knot& older, const Knot& newer, std::int64_t foreign_ns);
  static std::optional<Converted> across_step(const Knot& older, const Knot& newer, std::int64_t foreign_ns);

  Converted convert(std::int64_t foreign_ns) const;

  static constexpr std::size_t kKept = 64;
  ClockUnit unit_;
  bool trusted_ = true;
  std::array<Knot, kKept> knots_{};
  std::size_t count_ = 0;
  mutable std::size_t last_older_ = 0;  ///< a hint: number of the knot before the time last asked for
  std::uint64_t steps_ = 0;
  /// After a step back, foreign times in (low, high] were shown twice. Doubted until `until`.
  std::int64_t doubt_low_ = 0;
  std::int64_t doubt_high_ = 0;
  std::int64_t doubt_until_ = 0;
};

}  // namespace gpudiag
