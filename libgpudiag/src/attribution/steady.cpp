// SPDX-License-Identifier: Apache-2.0
#include "attribution/steady.hpp"

#include <algorithm>
#include <cstdlib>
#include <queue>
#include <vector>

namespace gpudiag {
namespace {

// Median of a multiset that grows: two heaps that meet at it.
class GrowingMedian {
 public:
  void add(std::int64_t value) {
    if (high_.empty() || value >= high_.top()) {
      high_.push(value);
    } else {
      low_.push(value);
    }
    if (high_.size() > low_.size() + 1) {
      low_.push(high_.top());
      high_.pop();
    } else if (low_.size() > high_.size()) {
      high_.push(low_.top());
      low_.pop();
    }
  }

  std::int64_t median() const { return high_.top(); }

 private:
  std::priority_queue<std::int64_t> low_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> high_;
};

// How far from their median three in four of the later half are: the pace of an uneven job. Of too few
// nothing is said.
std::int64_t scatter_of(std::span<const std::int64_t> walls) {
  std::vector<std::int64_t> later(walls.begin() + static_cast<std::ptrdiff_t>(walls.size() / 2), walls.end());
  if (later.size() < kSteadyNeeded || walls.size() < 2 * kSteadyNeeded) return 0;
  const auto middle = later.begin() + static_cast<std::ptrdiff_t>(later.size() / 2);
  std::nth_element(later.begin(), middle, later.end());
  const std::int64_t median = *middle;
  for (std::int64_t& wall : later) wall = std::llabs(wall - median);
  const auto third = later.begin() + static_cast<std::ptrdiff_t>(later.size() * 3 / 4);
  std::nth_element(later.begin(), third, later.end());
  return *third;
}

}  // namespace

bool is_complete_training(const IterationLedger& ledger) {
  return ledger.valid() && !ledger.partial && !ledger.empty && ledger.phase == Phase::kTrain;
}

std::size_t warm_up_length(std::span<const std::int64_t> walls) {
  std::size_t warm_up = walls.size();
  const std::int64_t scatter = scatter_of(walls);
  const auto near = [&](std::int64_t wall, std::int64_t median) {
    return std::llabs(wall - median) <= std::max(median / 5, scatter);
  };
  GrowingMedian later;
  for (std::size_t i = walls.size(); i-- > 0;) {
    later.add(walls[i]);
    if (walls.size() - i < kSteadyNeeded) continue;
    bool stays = true;
    for (std::size_t j = i; j < i + kSteadyNeeded; ++j) stays = stays && near(walls[j], later.median());
    if (stays) warm_up = i;
  }
  return warm_up;
}

}  // namespace gpudiag
