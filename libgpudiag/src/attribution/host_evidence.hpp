// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Names the sub-cause of host time by what the watcher saw in it (attribution.md, section 3). It never
// changes a cause, nor a length: the ledger is the same with and without it.
#pragma once

#include <cstddef>
#include <vector>

#include "attribution/piece_log.hpp"
#include "timeline/host_samples.hpp"

namespace gpudiag {

/// Goes over the pieces of `pieces` from `first` on. A piece of which less than half was seen at one
/// thing keeps what it has.
void name_by_samples(std::vector<Piece>& pieces, std::size_t first, const HostSamples& samples);

}  // namespace gpudiag
