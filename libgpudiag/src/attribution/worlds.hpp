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
#include "attribution/what_if.hpp"
#include "record/time.hpp"

namespace gpudiag {

inline constexpr std::size_t kAllHostWorld = kCauseCount;
inline constexpr std::size_t kCommunicationWorld = kCauseCount + 1;
inline constexpr std::size_t kCopyWorld = kCauseCount + 2;
/// Nothing is removed: the replay must give the trace back.
inline constexpr std::size_t kNullWorld = kCauseCount + 3;
inline constexpr std::size_t kWorldCount = kCauseCount + 4;

/// Worlds behind those, of which it is decided on the way what they are without (what_if.hpp). Three
/// make the lanes even: the loops over them run several times an operation, and pairs are what every
/// x86-64 adds and compares at once.
inline constexpr std::size_t kAskedWorlds = 3;
inline constexpr std::size_t kFirstAsked = kWorldCount;

/// One number of nanoseconds for each world.
inline constexpr std::size_t kLaneCount = kWorldCount + kAskedWorlds;
static_assert(kLaneCount % 2 == 0);
using Lanes = std::array<std::int64_t, kLaneCount>;

/// Earlier than anything, with room for sums.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 2;

/// A set of worlds.
using WorldMask = std::uint16_t;
static_assert(kLaneCount <= 16);
constexpr WorldMask world(std::size_t index) { return static_cast<WorldMask>(1u << index); }

/// The worlds in which host time of this cause has no length and its waits are void. A full launch
/// queue or another device is no host cause: it stays when all host causes are removed.
constexpr WorldMask worlds_without(Cause cause) {
  WorldMask mask = world(static_cast<std::size_t>(cause));
  if (cause != Cause::kDependency) mask |= world(kAllHostWorld);
  if (cause == Cause::kCommunicationWait) mask |= world(kCommunicationWorld);
  return mask;
}

/// The worlds without each cause and sub-cause, as they are asked for now.
class WorldMasks {
 public:
  WorldMasks() {
    for (std::size_t c = 0; c < kCauseCount; ++c) without_[c].fill(worlds_without(static_cast<Cause>(c)));
  }

  /// [hot]
  WorldMask without(Cause cause, SubCause sub_cause) const {
    return without_[static_cast<std::size_t>(cause)][static_cast<std::size_t>(sub_cause)];
  }
  WorldMask without_communication() const { return without_communication_; }
  WorldMask without_copies() const { return without_copies_; }

  const Question& asked(std::size_t place) const { return asked_[place]; }
  /// From now on the asked world at `place` is the one without these.
  void ask(std::size_t place, const Question& question) {
    const WorldMask bit = world(kFirstAsked + place);
    const auto clear = [bit](WorldMask& mask) { mask = static_cast<WorldMask>(mask & ~bit); };
    const auto set = [bit](WorldMask& mask) { mask = static_cast<WorldMask>(mask | bit); };
    for (auto& of_cause : without_) std::for_each(of_cause.begin(), of_cause.end(), clear);
    clear(without_communication_);
    clear(without_copies_);
    for (const Removal& removal : question) {
      if (removal.what == Removal::kCommunication) set(without_communication_);
      else if (removal.what == Removal::kCopy) set(without_copies_);
      if (!removal.is_cause()) continue;
      auto& of_cause = without_[removal.what];
      if (removal.sub_cause != SubCause::kNone) set(of_cause[static_cast<std::size_t>(removal.sub_cause)]);
      else std::for_each(of_cause.begin(), of_cause.end(), set);
    }
    asked_[place] = question;
  }

 private:
  std::array<std::array<WorldMask, kSubCauseNames.size()>, kCauseCount> without_;
  WorldMask without_communication_ = world(kCommunicationWorld);
  WorldMask without_copies_ = world(kCopyWorld);
  std::array<Question, kAskedWorlds> asked_{};
};

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
