// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// The text that a JSON string stands for.
#pragma once

#include <string>
#include <string_view>

namespace gpudiag::kineto_file {

/// `escaped` is what stands between the quotes. Half a surrogate pair (names cut in the middle have
/// them) becomes U+FFFD, an unknown escape the character itself.
std::string unescaped(std::string_view escaped);

}  // namespace gpudiag::kineto_file
