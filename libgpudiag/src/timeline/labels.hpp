// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// What one thread was inside of, as flat segments that do not overlap: nesting is decided here, once.
#pragma once

#include <vector>

#include "record/ids.hpp"
#include "record/time.hpp"
#include "timeline/range_table.hpp"

namespace gpudiag {

struct LabelledRange {
  TimePoint start;
  TimePoint end;
  NameId name{};
  RangeLabel label;
};

/// A stretch of a thread's time that belongs to one range.
struct Segment {
  TimePoint start;
  TimePoint end;
  TimePoint range_start;  ///< of the range it is part of
  TimePoint range_end;
  NameId name{};
  RangeLabel label;
};

/// Outermost owner wins, but garbage collection is always itself; among weak ranges the innermost
/// wins. Ranges of one thread may come in any order and may overlap without nesting.
class ThreadLabels {
 public:
  void add(const LabelledRange& range);
  /// A long operator or Python range that has no cause of its own: names what a silence was in.
  void add_context(const LabelledRange& range);
  /// Time of our own on this thread.
  void add_own(Interval interval);

  /// Lays the segments out anew where something was added.
  void prepare();
  /// Forgets what ended before `frontier`.
  void forget_before(TimePoint frontier);

  const std::vector<Segment>& owners() const { return owners_; }
  const std::vector<Segment>& weak() const { return weak_segments_; }
  const std::vector<Interval>& own() const { return own_; }
  bool empty() const { return owners_.empty() && weak_segments_.empty() && own_.empty(); }

  /// The segment of `segments` that covers `t`, or null.
  static const Segment* at(const std::vector<Segment>& segments, TimePoint t);
  /// The innermost context range that covers `t`, or null.
  const LabelledRange* context_at(TimePoint t) const;

 private:
  std::vector<LabelledRange> ranges_;
  std::vector<LabelledRange> contexts_;
  std::vector<Segment> owners_;
  std::vector<Segment> weak_segments_;
  std::vector<Interval> own_;
  bool dirty_ = false;
};

/// Segments of `ranges`: the outermost range owns, or the innermost where `innermost` is set.
std::vector<Segment> lay_out(std::vector<LabelledRange> ranges, bool innermost);
/// Lays `upper` over `lower`: where both are, upper stands.
std::vector<Segment> lay_over(const std::vector<Segment>& lower, const std::vector<Segment>& upper);

}  // namespace gpudiag
