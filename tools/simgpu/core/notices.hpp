// SPDX-License-Identifier: Apache-2.0
//
// The core's side of listener.hpp: asks whether anybody listens, and tells.
#pragma once

#include <atomic>
#include <cstdint>

#include "listener.hpp"

namespace simgpu {

struct Operation;

// What the listener wants, 0 while there is none. Relaxed: a notice at the edge may be missed or
// sent once too often; the table itself is published with release and read with acquire.
extern std::atomic<std::uint32_t> g_wanted;

inline bool listener_wants(std::uint32_t what) noexcept {
  return (g_wanted.load(std::memory_order_relaxed) & what) != 0;
}

void notify_enter(ApiCall& call);
void notify_exit(ApiCall& call);
std::uint64_t notify_queued(const Operation& operation);
void notify_finished(const OperationRecord& record);
void notify_sync(const SyncRecord& sync);
void notify_memory(const MemoryRecord& memory);
void notify_resource(const ResourceRecord& resource);

}  // namespace simgpu
