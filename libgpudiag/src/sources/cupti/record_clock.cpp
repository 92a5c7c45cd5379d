// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/record_clock.hpp"

#include <time.h>

#include <cmath>
#include <cstdlib>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace gpudiag {
namespace {

// Two clocks of nanoseconds slew against each other by less; so does a measured unit (see below).
constexpr double kSlew = 1e-3;
// A unit must be known well within what ClockMap takes for drift.
constexpr double kUnitError = 3e-4;
constexpr DurationNs kPause = milliseconds(1);
constexpr int kLongestMeasure = 20;
constexpr std::int64_t kNear = 1'000'000'000;
// Times of calls under way at a restart are a little older than it. Clocks of one machine lie further
// apart than this, but for seconds after its start.
constexpr std::int64_t kOlder = 10'000'000'000;
constexpr std::size_t kRealtime = RecordClock::kSources - 1;

bool read_cycles(std::uint64_t& count, void*) {
#if defined(__x86_64__)
  count = __rdtsc();
  return true;
#else
  count = 0;
  return false;
#endif
}

bool read_system(clockid_t id, std::uint64_t& count) {
  timespec t{};
  if (clock_gettime(id, &t) != 0) return false;
  count = static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
  return true;
}

double middle(const ClockAnchor& anchor) {
  return static_cast<double>(anchor.before.ns) + static_cast<double>(anchor.width().ns) / 2;
}

}  // namespace

std::array<ClockSource, kMachineClocks> machine_clocks() {
  return {ClockSource{"the cycle counter", read_cycles},
          ClockSource{"CLOCK_MONOTONIC", [](std::uint64_t& count, void*) { return read_system(CLOCK_MONOTONIC, count); }},
          ClockSource{"CLOCK_REALTIME", [](std::uint64_t& count, void*) { return read_system(CLOCK_REALTIME, count); }}};
}

RecordClock::RecordClock(const std::array<ClockSource, kSources>& sources, TimePoint (*now)(),
                         void (*pause)(DurationNs))
    : sources_{sources}, now_{now}, pause_{pause} {}

/// The tightest of three readings; all zero where the clock cannot be read.
ClockAnchor RecordClock::read(std::size_t source) const {
  ClockAnchor best;
  const ClockSource& clock = sources_[source];
  for (int i = 0; i < 3; ++i) {
    std::uint64_t count = 0;
    ClockAnchor anchor;
    anchor.before = now_();
    if (clock.read == nullptr || !clock.read(count, clock.user)) continue;
    anchor.after = now_();
    anchor.foreign_ns = static_cast<std::int64_t>(count);
    if (best.foreign_ns == 0 || anchor.width() < best.width()) best = anchor;
  }
  return best;
}

bool RecordClock::near_realtime(const ClockAnchor& anchor) const {
  const ClockAnchor realtime = read(kRealtime);
  return realtime.foreign_ns != 0 && std::abs(anchor.foreign_ns - realtime.foreign_ns) < kNear;
}

/// By a second reading, so long after `first` that the readings' own length does not matter; 0 where the
/// clock stands or runs backward.
double RecordClock::ns_of_a_count(std::size_t source, const ClockAnchor& first) const {
  double ns = 0;
  for (int i = 0; i < kLongestMeasure; ++i) {
    pause_(kPause);
    const ClockAnchor next = read(source);
    const std::int64_t counts = next.foreign_ns - first.foreign_ns;
    const double elapsed = middle(next) - middle(first);
    if (elapsed <= 0 || counts <= 0) continue;
    ns = elapsed / static_cast<double>(counts);
    // Each reading may be off by half its width.
    if (static_cast<double>((next.width() + first.width()).ns) / 2 / elapsed < kUnitError) break;
  }
  return ns;
}

void RecordClock::begin(std::size_t source, ClockUnit unit, const ClockAnchor& first) {
  steps_before_ += map_.steps();
  chosen_ = source;
  unit_ = unit;
  map_ = ClockMap{unit};
  if (first.foreign_ns != 0) map_.add(first);
}

void RecordClock::restart() {
  settled_ = lost_ = false;
  for (std::size_t i = 0; i < kSources; ++i) first_[i] = read(i);
  const ClockAnchor& first = first_[0];
  ClockUnit unit;
  if (first.foreign_ns != 0 && !near_realtime(first))
    if (const double ns = ns_of_a_count(0, first); ns > 0 && std::abs(ns - 1) > kSlew) unit = {first.foreign_ns, ns};
  begin(0, unit, first);
}

bool RecordClock::advance() {
  const ClockAnchor anchor = read(chosen_);
  if (anchor.foreign_ns == 0) return false;
  if (map_.empty()) first_[chosen_] = anchor;
  const std::uint64_t steps = map_.steps();
  map_.add(anchor);
  if (map_.steps() == steps || lost_) return false;
  // It jumped. A clock that was set goes on at its pace.
  const double ns = ns_of_a_count(chosen_, anchor);
  if (ns == 0 || std::abs(ns / unit_.ns - 1) <= kSlew) return false;
  begin(chosen_, std::abs(ns - 1) <= kSlew ? ClockUnit{} : ClockUnit{anchor.foreign_ns, ns}, anchor);
  return true;
}

bool RecordClock::was_shown(std::size_t source, std::int64_t count) const {
  const ClockAnchor& first = first_[source];
  if (first.foreign_ns == 0) return false;
  const ClockAnchor latest = read(source);
  return count >= first.foreign_ns - kOlder && count <= latest.foreign_ns;
}

void RecordClock::settle(std::uint64_t count) {
  if (settled_ || count == 0) return;
  settled_ = true;
  const auto time = static_cast<std::int64_t>(count);
  if (was_shown(chosen_, time)) return;
  for (std::size_t i = 0; i < kSources; ++i) {
    if (i == chosen_ || !was_shown(i, time)) continue;
    const double ns = i == kRealtime ? 1 : ns_of_a_count(i, first_[i]);
    if (ns == 0) continue;
    begin(i, std::abs(ns - 1) <= kSlew ? ClockUnit{} : ClockUnit{first_[i].foreign_ns, ns}, first_[i]);
    map_.add(read(i));
    return;
  }
  lost_ = true;
  map_.distrust();
}

}  // namespace gpudiag
