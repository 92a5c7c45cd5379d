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

namespace {

// A beat of `period` iterations from `first` on that nearly every one falls on, and that misses few. What
// happens at an iteration's end shows in the next one: off by one is on the beat.
bool keeps_time(const std::vector<std::size_t>& late, std::size_t first, std::size_t period) {
  const std::size_t tolerance = period >= 3 ? 1 : 0;
  std::size_t on_beat = 0;
  std::size_t last_beat = ~std::size_t{0};
  for (const std::size_t at : late) {
    if (at + period < first + period / 2) continue;
    const std::size_t beat = (at + period - first + period / 2) / period;
    const std::size_t due = first + beat * period;  // one period late, to stay above zero
    const std::size_t now = at + period;
    if ((now > due ? now - due : due - now) > tolerance || beat == last_beat) continue;
    last_beat = beat;
    ++on_beat;
  }
  const std::size_t beats = (late.back() - late.front() + period / 2) / period + 1;
  return on_beat * 5 >= late.size() * 4 && on_beat * 5 >= beats * 4;
}

/// 0: there is none.
std::uint32_t period_of(const std::vector<std::size_t>& late) {
  std::vector<std::size_t> apart;
  for (std::size_t k = 1; k < late.size(); ++k) apart.push_back(late[k] - late[k - 1]);
  std::sort(apart.begin(), apart.end());
  const std::size_t mean = (late.back() - late.front() + apart.size() / 2) / apart.size();
  for (const std::size_t period : {apart[apart.size() / 2], mean, mean + 1})
    for (const std::size_t first : {late.front(), late.front() + 1, late.front() - std::min<std::size_t>(late.front(), 1)})
      if (period >= 2 && keeps_time(late, first, period)) return static_cast<std::uint32_t>(period);
  return 0;
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
  if (const std::uint32_t period = period_of(late)) return {LatePattern::kPeriodic, period};
  // From some iteration on, each time.
  const std::size_t span = late.back() - late.front() + 1;
  if (late.size() >= 5 && late.size() * 10 >= span * 8) return {LatePattern::kPersistent, 0};
  return {};
}

}  // namespace gpudiag
