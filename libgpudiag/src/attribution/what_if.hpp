// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What the replay is asked beside the worlds it always keeps: what would be saved without two things at
// once, of which each may hide the other, or without one sub-cause.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "attribution/cause.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// Something that can be taken away: a cause, one sub-cause of it, communication, or copies.
struct Removal {
  static constexpr std::uint8_t kCommunication = kCauseCount;
  static constexpr std::uint8_t kCopy = kCauseCount + 1;
  static constexpr std::uint8_t kNothing = kCauseCount + 2;

  std::uint8_t what = kNothing;          ///< the number of a Cause, or one of the above
  SubCause sub_cause = SubCause::kNone;  ///< kNone: all of the cause

  static constexpr Removal of(Cause cause, SubCause sub_cause = SubCause::kNone) {
    return {static_cast<std::uint8_t>(cause), sub_cause};
  }
  bool is_cause() const { return what < kCauseCount; }
  Cause cause() const { return static_cast<Cause>(what); }
  friend auto operator<=>(const Removal&, const Removal&) = default;
};

/// `data_loading`, `host:logging`, `communication`; empty for nothing.
std::string name_of(const Removal& removal);
/// What name_of() gave; kNothing for any other text.
Removal removal_named(std::string_view name);

/// What to do without, all at once. The second may be nothing.
using Question = std::array<Removal, 2>;

inline bool is_asked(const Question& question) { return question[0].what != Removal::kNothing; }
inline bool is_pair(const Question& question) { return question[1].what != Removal::kNothing; }

/// A question with the replay's answer for one iteration.
struct WhatIf {
  Question without{};
  DurationNs saved;

  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

}  // namespace gpudiag
