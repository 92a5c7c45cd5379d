// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Names come from other people's memory: what is no clean UTF-8 is made so before it goes further.
#pragma once

#include <string>
#include <string_view>

#include "record/names.hpp"
#include "timeline/quality.hpp"

namespace gpudiag {

/// Valid UTF-8 without control characters (U+0000 to U+001F and U+007F). [any thread]
bool is_clean_text(std::string_view text);

/// `text` with U+FFFD for each control character and each byte that is no part of valid UTF-8.
std::string repaired_text(std::string_view text);

/// Interns `text`, repaired if need be; each repair is counted as repaired_text.
NameId intern_clean(NameTable& names, std::string_view text, Quality& quality);

}  // namespace gpudiag
