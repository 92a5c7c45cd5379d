// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// Stretches of launches and how alike they are. Inside of pattern_search: nobody else needs it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "timeline/pattern_search.hpp"

namespace gpudiag {

/// [begin, end) of the launches.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
};

/// How often each number comes in a stretch.
using Counts = std::unordered_map<std::uint32_t, std::uint32_t>;

template <typename Number>
Counts counts_of(std::span<const Launch> launches, Stretch stretch, Number number) {
  Counts counts;
  for (std::size_t i = stretch.begin; i < stretch.end; ++i) number(launches[i], counts);
  return counts;
}

inline Counts symbols_of(std::span<const Launch> launches, Stretch stretch) {
  return counts_of(launches, stretch, [](const Launch& launch, Counts& counts) { ++counts[launch.symbol]; });
}

inline std::size_t total(const Counts& counts) {
  std::size_t sum = 0;
  for (const auto& [number, count] : counts) sum += count;
  return sum;
}

/// What both have, as a share of the larger: 0 to 1. Of two empty ones 1.
inline double alike(const Counts& a, const Counts& b) {
  std::size_t common = 0;
  for (const auto& [number, count] : a)
    if (const auto found = b.find(number); found != b.end()) common += std::min(count, found->second);
  const std::size_t larger = std::max(total(a), total(b));
  return larger == 0 ? 1.0 : static_cast<double>(common) / static_cast<double>(larger);
}

/// The smallest number of events after which their kinds come again, over the last `times` repeats and at
/// least `least` events; 0: none up to `most`.
inline std::size_t repeat_of(std::span<const std::uint32_t> kinds, std::size_t times, std::size_t least,
                             std::size_t most) {
  for (std::size_t period = 1; period <= most; ++period) {
    const std::size_t needed = std::max(times * period, least);
    if (needed > kinds.size()) return 0;
    bool same = true;
    for (std::size_t i = kinds.size() - needed + period; i < kinds.size() && same; ++i)
      same = kinds[i] == kinds[i - period];
    if (same) return period;
  }
  return 0;
}

/// The middle one; of an even number the larger of the middle two. Changes their order.
template <typename Value>
Value median_of(std::vector<Value>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Begins of the cycles in `turns`, the newest last, to the anchors by which they are followed; empty where
/// there are none. Where `turns` has fewer than three, none.
CyclePattern anchor(std::span<const Launch> launches, std::span<const std::size_t> turns);

/// A cycle that optimizers close: `closes[i]` is whether launch i is an optimizer's.
/// `named`: known as such by their names, not by how they stand.
std::optional<CyclePattern> find_by_closers(std::span<const Launch> launches, const std::vector<bool>& closes,
                                            bool named);

/// A cycle that copies, pauses or graphs open.
std::optional<CyclePattern> find_by_openers(std::span<const Launch> launches);

}  // namespace gpudiag
