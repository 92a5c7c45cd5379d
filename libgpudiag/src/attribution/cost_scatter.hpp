// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// How far a mean cost can be trusted: its scatter over batches of iterations that follow each other.
// Batches, since what disturbs one iteration (another process on the cores, a page that is written
// back) disturbs its neighbours too, and what comes every so many iterations is no noise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attribution/ledger_sum.hpp"

namespace gpudiag {

/// What a finding may be about, or may hang on, as a column of the scatter: the causes of idle time
/// by their own numbers, then these.
inline constexpr std::size_t kCommunicationColumn = kCauseCount;
inline constexpr std::size_t kCopyColumn = kCauseCount + 1;
inline constexpr std::size_t kAllHostColumn = kCauseCount + 2;
/// What removing all host causes at once saves beyond what removing each alone adds up to.
inline constexpr std::size_t kTogetherColumn = kCauseCount + 3;
inline constexpr std::size_t kCostColumns = kCauseCount + 4;

using CostColumns = std::array<double, kCostColumns>;  ///< ns

/// The host's part of the causes: what one thread does after another, so that each may hide the rest.
constexpr bool is_host_cause(Cause cause) {
  return cause != Cause::kCommunicationWait && cause != Cause::kDependency && cause != Cause::kUnknown;
}

/// What the replay without each host cause alone saves, added up. A cause whose removal makes things
/// later counts as nothing.
DurationNs saved_by_each_host_cause(const LedgerSum& sum);

/// Costs of one device over the steady iterations, cut into batches. A value.
class CostScatter {
 public:
  /// The batches, no more than this: their means are compared with the t distribution.
  static constexpr std::size_t kBatches = 20;

  CostScatter() = default;
  /// `iterations`: how many will be added.
  explicit CostScatter(std::uint64_t iterations);

  void add(const IterationLedger& ledger);

  /// Half the width of the interval that holds, with 95 % of confidence, the sum of `column` less
  /// `share` of the wall times, in ns: divided by the sum of wall times, that of the share. 0 with
  /// fewer than two iterations: then nothing is known of it.
  double margin(std::size_t column, double share) const;

 private:
  struct Batch {
    CostColumns costs{};
    double wall = 0;
    std::uint64_t iterations = 0;
  };

  std::uint64_t iterations_ = 0;
  std::uint64_t added_ = 0;
  std::vector<Batch> batches_;
};

}  // namespace gpudiag
