// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: the ranks of one job, while it runs.
// The newest iterations of this rank, with their collectives, as the comparison of ranks wants them.
#pragma once

#include <deque>
#include <vector>

#include "attribution/ranks/rank_summary.hpp"

namespace gpudiag {

/// Of the rank's first device that has an iteration. Not thread-safe.
class RankTail {
 public:
  /// `uses` are those of the ledger's window; `about` counts in `abouts`.
  void add(const IterationLedger& ledger, const std::vector<CollectiveUse>& uses,
           const std::vector<CollectiveInfo>& abouts);
  /// Of the newest kPeerIterations; without `who`.
  RankSummary summary() const;

 private:
  struct Kept {
    RankIteration iteration;
    std::vector<CollectiveUse> uses;
    std::vector<CollectiveInfo> abouts;  ///< by use
  };
  bool has_device_ = false;
  DeviceId device_{};
  std::deque<Kept> kept_;
};

}  // namespace gpudiag
