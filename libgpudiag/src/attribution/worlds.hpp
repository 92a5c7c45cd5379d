// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// The worlds of the replay (attribution.md, section 4): in each, something did not happen.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "attribution/cause.hpp"
#include "record/time.hpp"

namespace gpudiag {

inline constexpr std::size_t kAllHostWorld = kCauseCount;
inline constexpr std::size_t kCommunicationWorld = kCauseCount + 1;
inline constexpr std::size_t kCopyWorld = kCauseCount + 2;
/// Nothing is removed: the replay must give the trace back.
inline constexpr std::size_t kNullWorld = kCauseCount + 3;
inline constexpr std::size_t kWorldCount = kCauseCount + 4;

/// One number of nanoseconds for each world, and one more that makes them even: the loops over them
/// run several times an operation, and pairs are what every x86-64 adds and compares at once. The last
/// lane is moved like the null world's and asked for by nobody.
inline constexpr std::size_t kLaneCount = (kWorldCount + 1) / 2 * 2;
using Lanes = std::array<std::int64_t, kLaneCount>;

/// Earlier than anything, with room for sums.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 2;

/// A set of worlds.
using WorldMask = std::uint16_t;
constexpr WorldMask world(std::size_t index) { return static_cast<WorldMask>(1u << index); }

/// The worlds in which host time of this cause has no length and its waits are void. A full launch
/// queue or another device is no host cause: it stays when all host causes are removed.
constexpr WorldMask worlds_without(Cause cause) {
  WorldMask mask = world(static_cast<std::size_t>(cause));
  if (cause != Cause::kDependency) mask |= world(kAllHostWorld);
  if (cause == Cause::kCommunicationWait) mask |= world(kCommunicationWorld);
  return mask;
}

/// When something happens: as observed, and in each world. The lanes lie where copies of 16 bytes
/// begin, so that a copy just written can be read back without waiting for it to reach memory.
struct alignas(16) Arrival {
  Lanes in{};
  std::int64_t at = 0;
};

inline void fill(Lanes& lanes, std::int64_t value) { lanes.fill(value); }

inline Arrival never() {
  Arrival arrival;
  arrival.at = kNever;
  fill(arrival.in, kNever);
  return arrival;
}

/// Of something that the host does at `at`, when it would be earlier by `shift`.
inline Arrival host_arrival(TimePoint at, const Lanes& shift) {
  Arrival arrival;
  arrival.at = at.ns;
  for (std::size_t w = 0; w < kLaneCount; ++w) arrival.in[w] = at.ns - shift[w];
  return arrival;
}

/// The later of the two, in every world.
inline void join(Arrival& arrival, const Arrival& other) {
  arrival.at = std::max(arrival.at, other.at);
  for (std::size_t w = 0; w < kLaneCount; ++w) arrival.in[w] = std::max(arrival.in[w], other.in[w]);
}

inline void add_to(Lanes& lanes, WorldMask mask, std::int64_t ns) {
  for (; mask != 0; mask = static_cast<WorldMask>(mask & (mask - 1)))
    lanes[static_cast<std::size_t>(__builtin_ctz(mask))] += ns;
}

}  // namespace gpudiag
