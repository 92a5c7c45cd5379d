// SPDX-License-Identifier: Apache-2.0
#include "attribution/cost_scatter.hpp"

#include <algorithm>
#include <cmath>

namespace gpudiag {
namespace {

// Two-sided 95 % points of Student's t for 1, 2, ... degrees of freedom.
constexpr std::array<double, CostScatter::kBatches - 1> kStudent{
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093};

CostColumns costs_of(const IterationLedger& ledger) {
  CostColumns costs{};
  for (std::size_t c = 0; c < kCauseCount; ++c) costs[c] = static_cast<double>(ledger.replay_cost[c].ns);
  costs[kCommunicationColumn] = static_cast<double>(ledger.replay_cost_communication.ns);
  costs[kCopyColumn] = static_cast<double>(ledger.replay_cost_copy.ns);
  costs[kAllHostColumn] = static_cast<double>(ledger.replay_cost_all_host.ns);
  // Signed: what an iteration saves the next one may lose again, and only the sum counts.
  costs[kTogetherColumn] = costs[kAllHostColumn];
  for (std::size_t c = 0; c < kCauseCount; ++c)
    if (is_host_cause(static_cast<Cause>(c))) costs[kTogetherColumn] -= costs[c];
  return costs;
}

}  // namespace

DurationNs saved_by_each_host_cause(const LedgerSum& sum) {
  DurationNs saved;
  for (std::size_t c = 0; c < kCauseCount; ++c)
    if (is_host_cause(static_cast<Cause>(c))) saved += std::max(DurationNs{}, sum.replay_cost[c]);
  return saved;
}

CostScatter::CostScatter(std::uint64_t iterations)
    : iterations_{iterations},
      batches_(static_cast<std::size_t>(std::min<std::uint64_t>(iterations, kBatches))) {}

void CostScatter::add(const IterationLedger& ledger) {
  if (batches_.empty()) return;
  // The batches differ in size by one iteration at the most.
  const std::uint64_t at = std::min(added_++, iterations_ - 1) * batches_.size() / iterations_;
  Batch& batch = batches_[static_cast<std::size_t>(at)];
  const CostColumns costs = costs_of(ledger);
  for (std::size_t c = 0; c < kCostColumns; ++c) batch.costs[c] += costs[c];
  batch.wall += static_cast<double>(ledger.wall.ns);
  ++batch.iterations;
}

// The share is a ratio of two sums, so what scatters is the cost less the wall time's share: an
// iteration that is twice as long and costs twice as much says the same as the others.
double CostScatter::margin(std::size_t column, double share) const {
  const auto count = static_cast<double>(batches_.size());
  if (batches_.size() < 2) return 0;
  const auto mean_of = [&](const Batch& batch) {
    return (batch.costs[column] - share * batch.wall) / static_cast<double>(std::max<std::uint64_t>(batch.iterations, 1));
  };
  double mean = 0;
  for (const Batch& batch : batches_) mean += mean_of(batch) / count;
  double squares = 0;
  for (const Batch& batch : batches_) squares += (mean_of(batch) - mean) * (mean_of(batch) - mean);
  const double error_of_mean = std::sqrt(squares / (count - 1) / count);
  return kStudent[batches_.size() - 2] * error_of_mean * static_cast<double>(added_);
}

}  // namespace gpudiag
