// SPDX-License-Identifier: Apache-2.0
#include "attribution/asked_findings.hpp"

#include <algorithm>
#include <utility>

namespace gpudiag {
namespace {

// What was asked for half of the time or less may not hold for the rest.
bool speaks_for_all(const WhatIfSum& answer, const Basis& basis) {
  return answer.wall.ns * 2 >= basis.sum.wall.ns && answer.wall.ns > 0;
}

FindingCause cause_of(const Removal& removal) { return static_cast<FindingCause>(removal.what); }

DurationNs time_in_ledger(const Basis& basis, FindingCause cause) {
  if (cause == FindingCause::kCommunication) return basis.sum.communication;
  if (cause == FindingCause::kCopy) return basis.sum.copy;
  return basis.sum.idle_of(static_cast<Cause>(cause));
}

// Half as much again as the two add up to, and twice what would be a finding: as for all host causes.
bool hides(const HiddenPair& pair) {
  const double apart = pair.alone + pair.other_alone;
  return pair.share - apart >= 2 * kLeastShare && pair.share >= 1.5 * apart;
}

}  // namespace

std::optional<HiddenPair> find_hidden_pair(const Basis& basis) {
  // Of one or two iterations nobody knows by how much they differ.
  if (basis.iterations < 3) return std::nullopt;
  std::optional<HiddenPair> best;
  for (const WhatIfSum& answer : basis.sum.what_if) {
    if (!is_pair(answer.without) || !speaks_for_all(answer, basis)) continue;
    HiddenPair pair{cause_of(answer.without[0]), cause_of(answer.without[1])};
    if (time_in_ledger(basis, pair.other) > time_in_ledger(basis, pair.cause)) std::swap(pair.cause, pair.other);
    pair.share = std::clamp(ratio(answer.saved, answer.wall), 0.0, 1.0);
    pair.alone = ratio(basis.cost_of(pair.cause), basis.sum.wall);
    pair.other_alone = ratio(basis.cost_of(pair.other), basis.sum.wall);
    if (hides(pair) && (!best || pair.share > best->share)) best = pair;
  }
  return best;
}

std::vector<SubCost> sub_costs_of(const Basis& basis, Cause cause) {
  std::vector<SubCost> costs;
  for (const WhatIfSum& answer : basis.sum.what_if) {
    const Removal& removal = answer.without[0];
    if (is_pair(answer.without) || removal.what != static_cast<std::uint8_t>(cause)) continue;
    if (removal.sub_cause == SubCause::kNone || !speaks_for_all(answer, basis)) continue;
    const double share = std::clamp(ratio(answer.saved, answer.wall), 0.0, 1.0);
    const double wall = static_cast<double>(mean(basis.sum.wall, basis.iterations).ns);
    costs.push_back({removal.sub_cause, share, DurationNs{static_cast<std::int64_t>(share * wall)}});
  }
  std::stable_sort(costs.begin(), costs.end(),
                   [](const SubCost& a, const SubCost& b) { return a.share > b.share; });
  return costs;
}

}  // namespace gpudiag
