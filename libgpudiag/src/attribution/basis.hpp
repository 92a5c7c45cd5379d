// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What a finding rests on: one rank or several as one. Inside of findings.hpp: nobody else needs it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "attribution/findings.hpp"

namespace gpudiag {

/// Below it a finding drowns in run-to-run noise and nobody would act on it.
inline constexpr double kLeastShare = 0.02;

inline double ratio(DurationNs part, DurationNs whole) {
  return whole.ns > 0 ? static_cast<double>(part.ns) / static_cast<double>(whole.ns) : 0.0;
}
inline double ms(DurationNs time) { return static_cast<double>(time.ns) / 1e6; }
inline DurationNs mean(DurationNs sum, std::uint64_t count) {
  return {count == 0 ? 0 : sum.ns / static_cast<std::int64_t>(count)};
}

struct Basis {
  LedgerSum sum;
  EvidenceSums evidence;
  std::vector<CostScatter> scatter;  ///< of each device
  std::uint64_t iterations = 0;
  std::optional<std::uint32_t> rank;
  bool steady = true;
  bool torch = false;
  Grade worst = Grade::kGood;

  void add(const RankBasis& of) {
    sum.add(of.sum);
    evidence.add(of.evidence);
    scatter.insert(scatter.end(), of.scatter.begin(), of.scatter.end());
    iterations += of.iterations;
    if (of.iterations > 0) steady = steady && of.steady;
    torch = torch || of.torch;
    worst = std::max(worst, of.quality.grade());
  }

  /// Never negative: where the replay without a cause comes out later, the cause costs nothing.
  DurationNs cost_of(FindingCause cause) const {
    return std::clamp(replayed_cost_of(cause), DurationNs{}, std::max(DurationNs{}, sum.wall));
  }
  /// Half of the 95 % interval of `share`, the sum of `column` over the sum of wall times. The ranks
  /// of a job wait for each other, so that their costs scatter together and not each for itself.
  double margin(std::size_t column, double share) const {
    double width = 0;
    for (const CostScatter& of_device : scatter) width += of_device.margin(column, share);
    return sum.wall.ns > 0 ? width / static_cast<double>(sum.wall.ns) : 0;
  }

 private:
  DurationNs replayed_cost_of(FindingCause cause) const {
    switch (cause) {
      case FindingCause::kCommunication: return sum.replay_cost_communication;
      case FindingCause::kCopy: return sum.replay_cost_copy;
      case FindingCause::kHostTogether: return sum.replay_cost_all_host;
      default: return sum.cost_of(static_cast<Cause>(cause));
    }
  }
};

/// The number of a finding's cause is that of its column.
constexpr std::size_t column_of(FindingCause cause) { return static_cast<std::size_t>(cause); }
static_assert(column_of(FindingCause::kCommunication) == kCommunicationColumn &&
              column_of(FindingCause::kCopy) == kCopyColumn &&
              column_of(FindingCause::kHostTogether) == kAllHostColumn);

/// A probe costs the job's threads time that looks like their own dispatch.
inline bool own_cost_explains(const Basis& basis, FindingCause cause) {
  if (cause != FindingCause::kLaunchOverhead && cause != FindingCause::kHost) return false;
  return basis.sum.own.ns > 0 && basis.sum.own.ns * 2 >= basis.cost_of(cause).ns;
}

}  // namespace gpudiag
