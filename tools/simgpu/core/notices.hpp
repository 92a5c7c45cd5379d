// SPDX-License-Identifier: Apache-2.0
//
// The core's side of listener.hpp: asks whether anybody listens, and tells.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
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

// Functions that set_wanted_call() took out, by domain and id; relaxed as above.
constexpr std::size_t kCallIds = 1024;
extern std::array<std::array<std::atomic<bool>, kCallIds>, 2> g_unwanted_calls;

inline bool listener_wants_call(ApiDomain domain, std::uint32_t cbid) noexcept {
  if (!listener_wants(domain == ApiDomain::runtime ? kWantRuntimeApi : kWantDriverApi)) return false;
  return cbid >= kCallIds ||
         !g_unwanted_calls[static_cast<std::size_t>(domain)][cbid].load(std::memory_order_relaxed);
}

void notify_enter(ApiCall& call);
void notify_exit(ApiCall& call);
std::uint64_t notify_queued(const Operation& operation);
void notify_finished(const OperationRecord& record);
void notify_sync(const SyncRecord& sync);
void notify_memory(const MemoryRecord& memory);
void notify_resource(const ResourceRecord& resource);

}  // namespace simgpu
