// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// The lines of evidence that stand under a finding.
#pragma once

#include <string>
#include <vector>

#include "attribution/basis.hpp"

namespace gpudiag {

/// What was seen of this cause, the heaviest first.
std::vector<std::string> cite(const Basis& basis, FindingCause cause);

/// "1 time", "7 times".
std::string counted(std::uint64_t count, std::string_view what);

}  // namespace gpudiag
