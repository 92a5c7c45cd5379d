// SPDX-License-Identifier: Apache-2.0
#include "attribution/evidence_sums.hpp"

#include <algorithm>

namespace gpudiag {
namespace {

// Findings cite three kinds a cause; range names with a number in them would else grow for ever.
constexpr std::size_t kKindsKept = 512;

std::tuple<DurationNs, DurationNs> weight(const EvidenceSum& sum) {
  return {sum.total.charged, sum.total.host};
}

// Iterations come in order; ranks and devices, whose sums come whole, have the same rhythm.
void note_distance(EvidenceSum& to, const EvidenceSum& next) {
  if (next.first > to.last) {
    const std::uint64_t apart = next.first - to.last;
    to.least_apart = to.least_apart == 0 ? apart : std::min(to.least_apart, apart);
    to.most_apart = std::max(to.most_apart, apart);
  }
  to.first = std::min(to.first, next.first);
  to.last = std::max(to.last, next.last);
}

}  // namespace

std::optional<double> rarity(const EvidenceSum& seen) {
  if (seen.least_apart < 2 || seen.last <= seen.first || seen.iterations < 2) return std::nullopt;
  return static_cast<double>(seen.last - seen.first) / static_cast<double>(seen.iterations - 1);
}

void EvidenceSums::add(const IterationLedger& ledger, TimePoint began) {
  for (const Evidence& seen : ledger.evidence) {
    EvidenceSum sum{seen, 1, ledger.index, ledger.index, 0, 0, ledger.index, seen.charged.ns > 0 ? seen.charged : seen.host};
    // Without a count it began in another iteration, and the time is not known here.
    const bool timed = seen.count > 0;
    sum.total.longest_at = timed ? TimePoint{} + (seen.longest_at - began) : kTimeMin;
    if (!timed) sum.example_weight = {};
    merge(sum);
  }
}

void EvidenceSums::add(const EvidenceSums& other) {
  for (const auto& [key, sum] : other.sums_) merge(sum);
}

void EvidenceSums::merge(const EvidenceSum& sum) {
  const Evidence& seen = sum.total;
  const auto [at, added] =
      sums_.try_emplace({seen.cause, seen.sub_cause, seen.what, seen.thread}, sum);
  if (added) {
    if (sums_.size() > 2 * kKindsKept) shrink();
    return;
  }
  EvidenceSum& to = at->second;
  to.total.count += seen.count;
  to.total.host += seen.host;
  to.total.charged += seen.charged;
  to.total.bytes += seen.bytes;
  note_distance(to, sum);
  to.iterations += sum.iterations;
  if (sum.example_weight > to.example_weight) {
    to.example_weight = sum.example_weight;
    to.example = sum.example;
    to.total.longest_at = seen.longest_at;
  }
}

void EvidenceSums::shrink() {
  std::vector<std::map<Key, EvidenceSum>::iterator> all;
  for (auto it = sums_.begin(); it != sums_.end(); ++it) all.push_back(it);
  std::nth_element(all.begin(), all.begin() + kKindsKept, all.end(), [](auto a, auto b) {
    return weight(a->second) > weight(b->second);
  });
  for (auto it = all.begin() + kKindsKept; it != all.end(); ++it) sums_.erase(*it);
}

std::vector<EvidenceSum> EvidenceSums::of(Cause cause) const {
  std::vector<EvidenceSum> found;
  for (const auto& [key, sum] : sums_)
    if (std::get<Cause>(key) == cause) found.push_back(sum);
  std::stable_sort(found.begin(), found.end(), [](const EvidenceSum& a, const EvidenceSum& b) {
    return weight(a) > weight(b);
  });
  return found;
}

}  // namespace gpudiag
