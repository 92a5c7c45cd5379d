// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/rank_recorder.hpp"

#include <algorithm>

namespace gpudiag {

void RankRecorder::iteration(const IterationLedger& ledger) {
  RankIteration made = rank_iteration_of(ledger);
  const std::vector<CollectiveUse> uses = watch_.take(ledger.device, {made.start, made.end()});
  made.use_count = static_cast<std::uint32_t>(uses.size());
  on_iteration_(ledger.device, made, uses, watch_.abouts());
}

void SummaryBuilder::add(DeviceId device, const RankIteration& iteration, std::span<const CollectiveUse> uses,
                         std::span<const CollectiveInfo> abouts) {
  RankSummary& summary = devices_[device];
  summary.abouts.insert(summary.abouts.end(), abouts.begin() + std::ssize(summary.abouts), abouts.end());
  RankIteration kept = iteration;
  kept.first_use = static_cast<std::uint32_t>(summary.uses.size());
  kept.use_count = static_cast<std::uint32_t>(uses.size());
  summary.iterations.push_back(kept);
  summary.uses.insert(summary.uses.end(), uses.begin(), uses.end());
}

std::vector<RankSummary> SummaryBuilder::take() {
  std::vector<RankSummary> all;
  for (auto& [device, summary] : devices_) {
    summary.who = who_;
    summary.who.device = device;
    all.push_back(std::move(summary));
  }
  const auto communicates = [](const RankSummary& summary) { return !summary.uses.empty(); };
  if (std::any_of(all.begin(), all.end(), communicates))
    std::erase_if(all, [&](const RankSummary& summary) { return !communicates(summary); });
  else if (all.size() > 1)
    all.resize(1);
  devices_.clear();
  return all;
}

}  // namespace gpudiag
