// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Bandwidths by the definitions of nccl-tests, so that they compare with what its programs print.
#pragma once

#include <cstdint>

#include "record/collective.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// algbw: bytes a second, in GB/s of 10^9; `bytes` as CollectiveInfo counts them. 0 where not known.
constexpr double algorithm_bandwidth(std::uint64_t bytes, DurationNs time) {
  return time.ns > 0 ? static_cast<double>(bytes) / static_cast<double>(time.ns) : 0.0;
}

/// What algbw is multiplied with to get busbw, the traffic of one link; `n` ranks.
constexpr double bus_factor(CollectiveKind kind, std::uint32_t n) {
  if (n < 2) return 1.0;
  const double ranks = n;
  switch (kind) {
    case CollectiveKind::kAllReduce: return 2 * (ranks - 1) / ranks;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter: return (ranks - 1) / ranks;
    default: return 1.0;
  }
}

}  // namespace gpudiag
