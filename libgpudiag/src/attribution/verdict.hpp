// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What the findings come to, and when there must be none.
#pragma once

#include <optional>
#include <span>

#include "attribution/basis.hpp"

namespace gpudiag {

/// Where the records bear no findings: why. `job`: all ranks as one.
std::optional<Diagnosis> refuse_findings(std::span<const RankBasis> ranks, const Basis& job);

/// Sets verdict and reason of a diagnosis that has its findings.
void set_verdict(Diagnosis& diagnosis, const Basis& job);

}  // namespace gpudiag
