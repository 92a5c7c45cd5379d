// SPDX-License-Identifier: Apache-2.0
//
// Everything else the core tells: synchronisation, memory, contexts, streams, graphs, devices.
#pragma once

#include <cupti.h>

#include "../core/listener.hpp"

namespace simgpu::cupti {

void record_sync(const SyncRecord& sync);
void record_memory(const MemoryRecord& memory);
void record_resource(const ResourceRecord& resource);

/// The records of what exists now, for cuptiActivityEnableAndDump. Only DEVICE, CONTEXT and
/// STREAM have any.
void dump_existing(CUpti_ActivityKind kind);

}  // namespace simgpu::cupti
