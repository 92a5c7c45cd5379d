// SPDX-License-Identifier: Apache-2.0
#include "session/peers/rank_tail.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "session/peers/peer_state.hpp"

namespace gpudiag {

void RankTail::add(const IterationLedger& ledger, const std::vector<CollectiveUse>& uses,
                   const std::vector<CollectiveInfo>& abouts) {
  if (!has_device_) device_ = ledger.device;
  has_device_ = true;
  if (ledger.device != device_ || ledger.empty) return;
  Kept kept{rank_iteration_of(ledger), uses, {}};
  if (kept.uses.size() > kPeerUsesKept) {
    kept.iteration.left_out += static_cast<std::uint32_t>(kept.uses.size() - kPeerUsesKept);
    kept.uses.resize(kPeerUsesKept);
  }
  for (const CollectiveUse& use : kept.uses) kept.abouts.push_back(abouts[use.about]);
  kept_.push_back(std::move(kept));
  if (kept_.size() > kPeerIterations) kept_.pop_front();
}

RankSummary RankTail::summary() const {
  RankSummary summary;
  std::map<std::string, std::uint32_t> numbers;
  for (const Kept& kept : kept_) {
    RankIteration iteration = kept.iteration;
    iteration.first_use = static_cast<std::uint32_t>(summary.uses.size());
    iteration.use_count = static_cast<std::uint32_t>(kept.uses.size());
    for (std::size_t u = 0; u < kept.uses.size(); ++u) {
      const auto [at, fresh] =
          numbers.try_emplace(text_of(kept.abouts[u]), static_cast<std::uint32_t>(summary.abouts.size()));
      if (fresh) summary.abouts.push_back(kept.abouts[u]);
      summary.uses.push_back(kept.uses[u]);
      summary.uses.back().about = at->second;
    }
    summary.iterations.push_back(iteration);
  }
  summary.finished = false;
  return summary;
}

}  // namespace gpudiag
