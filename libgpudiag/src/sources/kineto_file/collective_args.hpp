// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// What torch writes of a collective into the args of its kernel (from 2.3 on).
#pragma once

#include <cstdint>
#include <optional>

#include "record/collective.hpp"
#include "sources/kineto_file/trace_event.hpp"

namespace gpudiag::kineto_file {

/// Nothing where the event has no `Collective name`.
std::optional<CollectiveInfo> collective_of(const TraceEvent& event);
/// The group's own count of its operations; kNoSequence where it is not said.
std::uint32_t sequence_of(const TraceEvent& event);

}  // namespace gpudiag::kineto_file
