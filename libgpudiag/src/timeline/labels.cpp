// SPDX-License-Identifier: Apache-2.0
#include "timeline/labels.hpp"

#include <algorithm>
#include <tuple>

namespace gpudiag {
namespace {

bool range_before(const LabelledRange& a, const LabelledRange& b) {
  return std::tie(a.start, b.end, a.name) < std::tie(b.start, a.end, b.name);
}

Segment part_of(const LabelledRange& range, TimePoint start, TimePoint end) {
  return {start, end, range.start, range.end, range.name, range.label};
}

void push(std::vector<Segment>& segments, const Segment& segment) {
  if (segment.start < segment.end) segments.push_back(segment);
}

std::vector<Segment> outermost_of(const std::vector<LabelledRange>& ranges) {
  std::vector<Segment> segments;
  TimePoint covered = kTimeMin;
  for (const auto& range : ranges) {
    if (range.end <= covered) continue;
    push(segments, part_of(range, std::max(range.start, covered), range.end));
    covered = range.end;
  }
  return segments;
}

std::vector<Segment> innermost_of(const std::vector<LabelledRange>& ranges) {
  std::vector<Segment> segments;
  std::vector<const LabelledRange*> open;
  TimePoint cursor = kTimeMin;
  const auto close_until = [&](TimePoint t) {
    while (!open.empty() && open.back()->end <= t) {
      push(segments, part_of(*open.back(), std::max(cursor, open.back()->start), open.back()->end));
      cursor = std::max(cursor, open.back()->end);
      open.pop_back();
    }
  };
  for (const auto& range : ranges) {
    close_until(range.start);
    if (!open.empty())
      push(segments, part_of(*open.back(), std::max(cursor, open.back()->start), range.start));
    cursor = std::max(cursor, range.start);
    open.push_back(&range);
  }
  close_until(kTimeMax);
  return segments;
}

}  // namespace

std::vector<Segment> lay_out(std::vector<LabelledRange> ranges, bool innermost) {
  std::sort(ranges.begin(), ranges.end(), range_before);
  return innermost ? innermost_of(ranges) : outermost_of(ranges);
}

std::vector<Segment> lay_over(const std::vector<Segment>& lower, const std::vector<Segment>& upper) {
  std::vector<Segment> result;
  std::size_t next = 0;
  for (Segment segment : lower) {
    while (next < upper.size() && upper[next].end <= segment.start) result.push_back(upper[next++]);
    while (next < upper.size() && upper[next].start < segment.end) {
      Segment before = segment;
      before.end = upper[next].start;
      push(result, before);
      segment.start = std::min(segment.end, upper[next].end);
      if (upper[next].end > segment.end) break;
      result.push_back(upper[next++]);
    }
    push(result, segment);
  }
  while (next < upper.size()) result.push_back(upper[next++]);
  return result;
}

void ThreadLabels::add(const LabelledRange& range) {
  ranges_.push_back(range);
  dirty_ = true;
}

void ThreadLabels::add_context(const LabelledRange& range) {
  contexts_.push_back(range);
  dirty_ = true;
}

void ThreadLabels::add_own(Interval interval) {
  if (interval.empty()) return;
  own_.push_back(interval);
  dirty_ = true;
}

void ThreadLabels::prepare() {
  if (!dirty_) return;
  dirty_ = false;
  std::vector<LabelledRange> owning, weak, collecting;
  for (const auto& range : ranges_) {
    if (range.label.meaning == RangeMeaning::kWeak) weak.push_back(range);
    else if (range.label.sub_cause == SubCause::kGarbageCollection) collecting.push_back(range);
    else owning.push_back(range);
  }
  owners_ = lay_over(lay_out(std::move(owning), false), lay_out(std::move(collecting), false));
  weak_segments_ = lay_out(std::move(weak), true);
  std::sort(contexts_.begin(), contexts_.end(), range_before);
  std::sort(own_.begin(), own_.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
}

void ThreadLabels::forget_before(TimePoint frontier) {
  const auto ended = [&](const auto& range) { return range.end <= frontier; };
  if (std::erase_if(ranges_, ended) > 0) dirty_ = true;
  std::erase_if(contexts_, ended);
  std::erase_if(own_, ended);
}

const Segment* ThreadLabels::at(const std::vector<Segment>& segments, TimePoint t) {
  const auto after = std::upper_bound(
      segments.begin(), segments.end(), t,
      [](TimePoint time, const Segment& segment) { return time < segment.start; });
  if (after == segments.begin()) return nullptr;
  const Segment& found = *(after - 1);
  return t < found.end ? &found : nullptr;
}

const LabelledRange* ThreadLabels::context_at(TimePoint t) const {
  // Context ranges are long and few; nesting is far less deep than this.
  constexpr int kSearched = 64;
  auto after = std::upper_bound(
      contexts_.begin(), contexts_.end(), t,
      [](TimePoint time, const LabelledRange& range) { return time < range.start; });
  for (int i = 0; i < kSearched && after != contexts_.begin(); ++i) {
    --after;
    if (t < after->end) return &*after;
  }
  return nullptr;
}

}  // namespace gpudiag
