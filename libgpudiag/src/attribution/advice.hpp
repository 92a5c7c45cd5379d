// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What to do about a finding: one text for each cause and, where the fixes differ, each sub-cause.
#pragma once

#include <string_view>

#include "attribution/findings.hpp"

namespace gpudiag {

/// The text for this very sub-cause, else the one for the cause. Never empty.
std::string_view advice_for(FindingCause cause, SubCause sub_cause);

}  // namespace gpudiag
