// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// Looks for the cycle in a sequence of launches: events that may close or open a cycle, what lies
// between them, and after how many of them it comes again. docs/iterations.md has the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "timeline/launch_names.hpp"
#include "timeline/pattern_tracker.hpp"

namespace gpudiag {

/// The cycle of `launches`, where there is one beyond doubt. Linear in their number, but for a
/// factor of some tens that a search costs and a tracker does not.
std::optional<CyclePattern> find_cycle(std::span<const Launch> launches);

}  // namespace gpudiag
