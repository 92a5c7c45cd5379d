// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What follows from the replay's answers (what_if.hpp): two causes of which each hides the other, and
// what the sub-causes of one cost each.
#pragma once

#include <optional>
#include <vector>

#include "attribution/basis.hpp"

namespace gpudiag {

/// Two things that hide each other, and what removing both would save.
struct HiddenPair {
  FindingCause cause;  ///< of the two the one with more time in the ledger
  FindingCause other;
  double share = 0;    ///< of wall, saved without both
  double alone = 0;    ///< saved without `cause` alone
  double other_alone = 0;
};

/// The pair that saves most, where there is one that saves far more than its parts.
std::optional<HiddenPair> find_hidden_pair(const Basis& basis);

/// What is known of the sub-causes of `cause`, falling.
std::vector<SubCost> sub_costs_of(const Basis& basis, Cause cause);

}  // namespace gpudiag
