// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// The one number by which a kernel record tells launches of one shape from those of another.
#pragma once

#include <array>
#include <cstdint>

namespace gpudiag {

using Dimensions = std::array<std::uint32_t, 3>;

/// The same for the same grid and block, in a job and in a trace of it; never 0, which says that
/// the shape is not known.
constexpr std::uint64_t launch_shape(const Dimensions& grid, const Dimensions& block) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, word by word
  for (const Dimensions* dimensions : {&grid, &block}) {
    for (const std::uint32_t size : *dimensions) hash = (hash ^ size) * 0x100000001b3u;
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace gpudiag
