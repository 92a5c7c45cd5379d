// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// Iteration boundaries on the host: what the marks of one kind on one thread mark is a loop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "record/ids.hpp"
#include "record/record.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// The iteration named here ends at `at` and the next begins.
struct Boundary {
  TimePoint at;
  NameId label{};
  std::uint64_t index = kNoIndex;
  bool opening = false;  ///< what ends here is not an iteration but what came before the first
  bool from_range = false;
  bool evaluation = false;  ///< what ends here was no training
};

/// Marks of one source on one thread, in order of time.
class Loop {
 public:
  static constexpr std::uint32_t kNoDevice = 0xffffffffu;

  /// `device`: the one whose launches show the loop, where that is how it was found.
  Loop(MarkSource source, std::uint32_t thread, std::uint32_t device = kNoDevice)
      : source_(source), thread_(thread), device_(device) {}

  MarkSource source() const { return source_; }
  std::uint32_t thread() const { return thread_; }
  std::uint32_t device() const { return device_; }

  void add_mark(TimePoint at, NameId label, std::uint64_t index, bool evaluation = false);
  /// The loop turns here, by its launches.
  void add_turn(TimePoint at, bool opening, bool evaluation);
  /// A range that is an iteration; only the first one seen opens, the later ones end at their end.
  void add_range(Interval range, NameId label, std::uint64_t index);

  void prepare();
  /// The first boundary not yet taken, or null. Valid until the next add.
  const Boundary* next() const { return taken_ < boundaries_.size() ? &boundaries_[taken_] : nullptr; }
  void take() { ++taken_; }
  void compact();
  /// Time of the earliest boundary ever seen: identifies the loop whatever its thread is called.
  TimePoint first_seen() const { return first_seen_; }
  std::uint64_t count() const { return count_; }

 private:
  MarkSource source_;
  std::uint32_t thread_;
  std::uint32_t device_;
  std::vector<Boundary> boundaries_;
  std::size_t taken_ = 0;
  TimePoint first_seen_ = kTimeMax;
  std::optional<TimePoint> opening_;  ///< start of the earliest iteration range
  bool opened_ = false;               ///< the opening boundary is in place
  std::uint64_t count_ = 0;
  bool sorted_ = true;
};

/// Does `a` deserve more trust than `b`? Ties go to the loop that began first.
bool more_trusted(const Loop& a, const Loop& b);

}  // namespace gpudiag
