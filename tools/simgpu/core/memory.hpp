// SPDX-License-Identifier: Apache-2.0
//
// Devices, contexts and the memory of both sides. Device pointers are backed by host memory, so a
// copy back gives finite bytes; the kernel's page is touched only where something was moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model.hpp"

namespace simgpu {

constexpr std::uint32_t kNoDevice = 0xffffffff;

struct Allocation {
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::unknown;
  std::uint32_t device = kNoDevice;  // of pinned memory too: the device current at its allocation
  unsigned flags = 0;
  bool is_async = false;    // from cudaMallocAsync
  bool registered = false;  // cudaHostRegister: the memory is the caller's
  bool mapped = false;      // by mmap, else by aligned_alloc
  void* pool = nullptr;
};

// All of these need the engine's lock. Results are cudaError_t.

// Device, managed or pinned memory. `device` is charged for the first two.
int allocate_memory(MemoryKind kind, Device& device, std::size_t bytes, unsigned flags, void** out);
// Registers memory of the caller as pinned.
int register_host_memory(void* address, std::size_t bytes, unsigned flags, std::uint32_t device);
int unregister_host_memory(void* address);
// The allocation that starts at, or contains, the address; null where there is none.
Allocation* find_allocation(const void* address);
// Gives memory back at once. The address must be the start of an allocation.
int release_memory(void* address);
MemoryKind memory_kind(const void* address);

// Devices exist from the first question on; contexts come with first use.
std::span<Device* const> all_devices();
std::vector<Context*>& all_contexts();
// [takes no lock] Creates a context and tells the listener. `device` must exist.
Context* create_context(Device& device, bool primary);
// The primary context, created if need be. Takes the engine's lock itself.
Context* primary_context(Device& device);
// The current context of the thread; its device's primary one if there is none. Null only when
// there is no device.
Context* require_context();

// Takes the engine's lock itself.
Stream* create_stream(Context& context, StreamKind kind, int priority);
// [locked] Streams with this id are gone: nothing may be queued to them again.
void destroy_stream(Stream& stream);

}  // namespace simgpu
