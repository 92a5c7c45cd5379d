// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// The evidence of many iterations, added up by what was seen: what a finding cites.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attribution/ledger.hpp"

namespace gpudiag {

/// One kind of evidence over all iterations added.
struct EvidenceSum {
  Evidence total;                   ///< longest_at is that of the example, since the rank began; kTimeMin: not known
  std::uint64_t iterations = 0;     ///< in how many it was seen
  std::uint64_t first = 0;          ///< index of the first of them
  std::uint64_t last = 0;           ///< of the last
  std::uint64_t least_apart = 0;    ///< of two that follow each other; 0: there are no two
  std::uint64_t most_apart = 0;
  std::uint64_t example = 0;        ///< index of the iteration with the most of it
  DurationNs example_weight;        ///< charged time there, host time where nothing is charged
};

/// Iterations from one time to the next, on average, of what is seen twice or more often and in no more
/// than every other iteration. None: it is no rare event.
std::optional<double> rarity(const EvidenceSum& seen);

/// Keeps the heaviest kinds; memory is bounded however many there are.
class EvidenceSums {
 public:
  /// `began`: when the rank's first window opened; the examples' times are counted from there, since
  /// a live session's clock runs from the machine's start.
  void add(const IterationLedger& ledger, TimePoint began = {});
  void add(const EvidenceSums& other);
  /// Of this cause, by charged time and then host time, falling.
  std::vector<EvidenceSum> of(Cause cause) const;

 private:
  using Key = std::tuple<Cause, SubCause, std::string, ThreadId>;
  void merge(const EvidenceSum& sum);
  void shrink();

  std::map<Key, EvidenceSum> sums_;
};

}  // namespace gpudiag
