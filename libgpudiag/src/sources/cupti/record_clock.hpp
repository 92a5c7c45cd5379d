// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// The clock in which CUPTI's records come, and the way from it to the session's. By default it is
// CLOCK_REALTIME; a profiler that was here before us may have left another behind, in any unit, which
// nobody can unset.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "record/clock.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// A clock that records may be in. `read` is false where it could not be read.
struct ClockSource {
  const char* name;
  bool (*read)(std::uint64_t& count, void* user);
  void* user = nullptr;
};

/// The clocks of this machine that profilers use: the cycle counter where it can be read, and the
/// system's. For the place behind CUPTI's own.
inline constexpr std::size_t kMachineClocks = 3;
std::array<ClockSource, kMachineClocks> machine_clocks();

/// Not thread-safe: the drain thread owns it.
class RecordClock {
 public:
  static constexpr std::size_t kSources = 1 + kMachineClocks;

  /// `sources[0]` is what CUPTI says its clock is (cuptiGetTimestamp); the others are tried where
  /// records do not agree with it. `now` reads the session's clock
  /// and `pause` lets it go on.
  RecordClock(const std::array<ClockSource, kSources>& sources, TimePoint (*now)(), void (*pause)(DurationNs));

  /// Forgets what was known. To be called before anything is enabled: all records to come are later.
  /// Takes some microseconds where the clock is CLOCK_REALTIME, else up to 20 ms, to find its unit.
  void restart();
  /// One more reading; to be taken after the buffers of a round, so that no time in them is newer.
  /// Returns true where the clock has been exchanged for another meanwhile: then it is measured anew,
  /// and times of before count as foreign.
  bool advance();

  /// Until the first record of a host call has been seen, only CUPTI's word tells which clock it is.
  bool settled() const { return settled_; }
  /// `count` is the time of a record from between restart() and the latest advance(). Where CUPTI's word does
  /// not agree with it the clock that does is taken; where none does, all times are doubted.
  void settle(std::uint64_t count);

  const ClockMap& map() const { return map_; }
  /// No clock is known in which the records are.
  bool lost() const { return lost_; }
  /// Of the clock that is taken, for people.
  const char* name() const { return sources_[chosen_].name; }
  bool counts_ns() const { return unit_.is_ns(); }
  std::uint64_t steps() const { return steps_before_ + map_.steps(); }

 private:
  ClockAnchor read(std::size_t source) const;
  bool near_realtime(const ClockAnchor& anchor) const;
  double ns_of_a_count(std::size_t source, const ClockAnchor& first) const;
  void begin(std::size_t source, ClockUnit unit, const ClockAnchor& first);
  bool was_shown(std::size_t source, std::int64_t count) const;

  std::array<ClockSource, kSources> sources_;
  TimePoint (*now_)();
  void (*pause_)(DurationNs);
  ClockMap map_;
  ClockUnit unit_;
  std::array<ClockAnchor, kSources> first_{};  // of each clock, at the restart
  std::size_t chosen_ = 0;
  std::uint64_t steps_before_ = 0;
  bool settled_ = false;
  bool lost_ = false;
};

}  // namespace gpudiag
