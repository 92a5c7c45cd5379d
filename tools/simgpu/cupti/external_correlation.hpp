// SPDX-License-Identifier: Apache-2.0
//
// External correlation: ids that a thread has pushed stand before each API record it makes, one
// record for each kind of id.
#pragma once

#include <cupti.h>

#include <cstdint>

namespace simgpu::cupti {

/// Precondition for both: `kind` is valid.
void push_external_id(CUpti_ExternalCorrelationKind kind, std::uint64_t id);
/// False when nothing is pushed for the kind.
bool pop_external_id(CUpti_ExternalCorrelationKind kind, std::uint64_t& id);

/// [hot] Appends the records that tie the thread's topmost ids to an API call. Costs one test
/// where nothing is pushed.
void record_external_ids(std::uint32_t correlation_id);

}  // namespace simgpu::cupti
