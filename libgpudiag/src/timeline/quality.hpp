// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// How far the records themselves can be trusted: one counter per defect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpudiag {

enum class Defect : std::uint8_t {
  kUntimed,        ///< start = end = 0: the tracer could not time it
  kNegative,       ///< end before start
  kForeignClock,   ///< far outside the session: another clock
  kIncomplete,     ///< no end
  kOrphan,         ///< operation whose launch was never seen
  kNoOperation,    ///< launch whose operation was never delivered
  kDropped,        ///< records the tracer says it lost
  kLate,           ///< arrived after its iteration had been closed
  kDuplicate,      ///< same correlation, stream and start twice
  kBrokenEvent,    ///< an event of a file that could not be read
  kRepairedText,   ///< control characters or bad UTF-8 in a name
  kTruncated,      ///< a file that ends in the middle
};

inline constexpr std::array<std::string_view, 12> kDefectNames{
    "untimed", "negative", "foreign_clock", "incomplete", "orphan", "no_operation",
    "dropped", "late",     "duplicate",     "broken_event", "repaired_text", "truncated"};

/// Up to 1 % defective records is fair, more is poor (attribution.md, section 2).
enum class Grade : std::uint8_t { kGood, kFair, kPoor };

struct Quality {
  std::uint64_t records = 0;
  std::array<std::uint64_t, kDefectNames.size()> defects{};

  std::uint64_t& operator[](Defect defect) { return defects[static_cast<std::size_t>(defect)]; }
  std::uint64_t operator[](Defect defect) const { return defects[static_cast<std::size_t>(defect)]; }
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (auto count : defects) sum += count;
    return sum;
  }
  Grade grade() const {
    if (total() == 0) return Grade::kGood;
    return total() * 100 <= records ? Grade::kFair : Grade::kPoor;
  }
};

}  // namespace gpudiag
