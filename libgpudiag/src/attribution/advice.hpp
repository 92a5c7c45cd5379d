// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What to do about a finding: one text for each cause and, where the fixes differ, each sub-cause.
#pragma once

#include <cstdint>
#include <string_view>

#include "attribution/findings.hpp"

namespace gpudiag {

/// Whose names the text may use. Who trains in plain C++ has no `num_workers` to raise.
enum class Wording : std::uint8_t { kPlain, kTorch };

/// The text for this very sub-cause, else the one for the cause. Never empty.
std::string_view advice_for(FindingCause cause, SubCause sub_cause, Wording wording);

/// Whether what was seen has a name that only PyTorch gives: its loader, its operators, its profiler.
bool is_name_of_torch(std::string_view what);

}  // namespace gpudiag
