// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// What a CUDA call does, by its name; one table for live and recorded sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "record/record.hpp"

namespace gpudiag {

struct ApiTraits {
  ApiClass api = ApiClass::kOther;
  std::uint16_t flags = 0;  ///< kDriverApi, kBlocksNever of record_flag

  constexpr bool operator==(const ApiTraits&) const = default;
};

/// By function name as CUPTI and Kineto write it: versions and stream suffixes (`_v2`, `_v7000`,
/// `_ptsz`) and leading underscores do not matter. A name it does not know is kOther: such a call
/// still joins its operations by correlation id, for nothing is ever joined by name. [any thread]
ApiTraits api_traits(std::string_view name);

/// "cudaLaunchKernel" of "cudaLaunchKernel_ptsz_v7000": without version and stream suffixes.
/// [any thread]
std::string plain_api_name(std::string_view name);

}  // namespace gpudiag
