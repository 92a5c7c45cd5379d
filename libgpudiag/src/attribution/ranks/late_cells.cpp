// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/late_cells.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

namespace gpudiag {
namespace {

// In standard deviations. Of 8,192 ranks and 20 iterations chance reaches 4.5.
constexpr double kBeyondChance = 6;

bool stands_out(const RankLateness& cell, DurationNs step) {
  const double least = kLeastLateShare * static_cast<double>(step.ns);
  const auto most = static_cast<double>(cell.most.ns);
  return most > least && most > kBeyondChance * cell.noise;
}

}  // namespace

bool is_comparable(const RankIteration* iteration) {
  return iteration != nullptr && iteration->valid && !iteration->partial &&
         (iteration->phase == Phase::kTrain || iteration->phase == Phase::kWindow);
}

LateCells find_late_cells(const JobTable& table, const Lateness& lateness, std::size_t ranks) {
  const std::size_t n = table.iteration_count();
  LateCells found;
  found.late.resize(ranks * n);
  for (std::size_t r = 0; r < ranks; ++r) {
    DurationNs total;
    double sum = 0;
    double noise = 0;
    double steps = 0;
    std::size_t seen = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!is_comparable(table.iteration_of(r, i))) continue;
      const RankLateness& cell = lateness.cells[r * n + i];
      ++seen;
      sum += static_cast<double>(cell.most.ns);
      noise = std::hypot(noise, cell.noise);
      steps += static_cast<double>(lateness.step[i].ns);
      DurationNs late;
      if (stands_out(cell, lateness.step[i])) late = cell.most;
      found.late[r * n + i] = late;
      total += late;
    }
    // A little each time is beyond chance when it adds up.
    if (seen >= 3 && sum > kLeastLateShare * steps && sum > kBeyondChance * noise && sum > 2 * static_cast<double>(total.ns)) {
      total = {};
      for (std::size_t i = 0; i < n; ++i) {
        if (!is_comparable(table.iteration_of(r, i))) continue;
        found.late[r * n + i] = std::max(DurationNs{1}, lateness.cells[r * n + i].most);
        total += found.late[r * n + i];
      }
    }
    if (total.ns > 0) found.ranks.emplace_back(total, static_cast<std::uint32_t>(r));
  }
  std::sort(found.ranks.begin(), found.ranks.end(), [](const auto& a, const auto& b) {
    return std::pair{b.first, a.second} < std::pair{a.first, b.second};
  });
  return found;
}

PatternOf pattern_of(const std::vector<std::size_t>& late, std::size_t seen) {
  if (late.empty()) return {};
  if (late.size() * 10 >= seen * 6) return {LatePattern::kPersistent, 0};
  if (late.size() < 3) return {};
  std::vector<std::size_t> apart;
  for (std::size_t k = 1; k < late.size(); ++k) apart.push_back(late[k] - late[k - 1]);
  std::vector<std::size_t> sorted = apart;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted[sorted.size() / 2];
  // One that hides behind somebody else's, or comes an iteration early, does not spoil the rhythm.
  const auto regular = static_cast<std::size_t>(std::count_if(apart.begin(), apart.end(), [&](std::size_t a) {
    return a + 1 >= middle && a <= middle + 1;
  }));
  if (middle >= 2 && regular * 4 >= apart.size() * 3) return {LatePattern::kPeriodic, static_cast<std::uint32_t>(middle)};
  // From some iteration on, each time.
  const std::size_t span = late.back() - late.front() + 1;
  if (late.size() >= 5 && late.size() * 10 >= span * 8) return {LatePattern::kPersistent, 0};
  return {};
}

}  // namespace gpudiag
