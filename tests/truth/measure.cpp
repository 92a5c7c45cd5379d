// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>

namespace gpudiag::truth {
namespace {

// Adds the length of the union of `spans` (sorted by start) inside each window; returns the union.
std::vector<Interval> unite(std::vector<Interval> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  std::vector<Interval> united;
  for (const Interval& span : spans) {
    if (span.empty()) continue;
    if (united.empty() || span.start > united.back().end)
      united.push_back(span);
    else
      united.back().end = std::max(united.back().end, span.end);
  }
  return united;
}

DurationNs covered(const std::vector<Interval>& united, Interval window) {
  DurationNs sum;
  auto at = std::partition_point(united.begin(), united.end(),
                                 [&](const Interval& i) { return i.end <= window.start; });
  for (; at != united.end() && at->start < window.end; ++at) sum += at->clipped_to(window).length();
  return sum;
}

std::size_t iteration_of(const History& run, TimePoint call_start) {
  auto after = std::upper_bound(run.marks.begin(), run.marks.end(), call_start,
                                [](TimePoint t, const Marked& mark) { return t < mark.at; });
  return static_cast<std::size_t>(after - run.marks.begin());
}

struct Boundary {
  TimePoint launched = kTimeMin;
  TimePoint end = kTimeMin;

  void add(TimePoint call_start, TimePoint operation_end, Cut cut) {
    if (cut == Cut::kAllDone) {
      end = std::max(end, operation_end);
    } else if (call_start >= launched) {
      launched = call_start;
      end = operation_end;
    }
  }
};

}  // namespace

std::vector<Window> measure(const Program& program, const History& run, std::uint32_t device,
                            Cut cut) {
  std::vector<Interval> kernels;
  std::vector<Interval> all;
  std::vector<Boundary> last(run.marks.size() + 1);
  TimePoint first = kTimeMax;
  for (const Operation& operation : run.operations) {
    const Stream& stream = program.streams[operation.stream];
    if (stream.device != device) continue;
    const Call& call = run.calls[operation.correlation - 1];
    const Interval span{operation.start, operation.end};
    if (call.action->what != Do::kCopy) kernels.push_back(span);
    if (call.action->what != Do::kCopy || stream.foreground) all.push_back(span);
    if (!stream.foreground) continue;
    first = std::min(first, operation.start);
    last[iteration_of(run, call.start)].add(call.start, operation.end, cut);
  }
  const auto compute = unite(std::move(kernels));
  const auto busy = unite(std::move(all));
  std::vector<Window> windows;
  TimePoint start = first;
  for (std::size_t i = 0; i < run.marks.size(); ++i) {
    Window window{start, std::max(start, last[i].end), {}, {}, {}};
    const Interval span{window.start, window.end};
    window.compute = covered(compute, span);
    window.copy = covered(busy, span) - window.compute;
    window.idle = window.wall() - window.compute - window.copy;
    windows.push_back(window);
    start = window.end;
  }
  return windows;
}

}  // namespace gpudiag::truth
