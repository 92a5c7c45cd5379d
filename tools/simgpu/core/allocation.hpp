// SPDX-License-Identifier: Apache-2.0
//
// The calls that allocate and free, with the waits CUDA attaches to them and the notices they
// give. Results are cudaError_t; all take the engine's lock themselves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory.hpp"

namespace simgpu {

constexpr std::uint32_t kPoolMagic = 0x504f4f4c;

// A memory pool. Allocations of the simulation go straight to the device; a pool only counts.
struct Pool {
  std::uint32_t magic = kPoolMagic;
  Device* device = nullptr;
  std::uint64_t release_threshold = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t used_high_bytes = 0;
  int reuse[3] = {1, 1, 1};  // follow event dependencies, opportunistic, internal dependencies
};

// The pool behind a handle, or null.
Pool* find_pool(void* handle);
Pool* default_pool(Device& device);
Pool*& current_pool(Device& device);

// cudaMalloc and its kin: device memory waits for the device, as cudaFree does.
int allocate(MemoryKind kind, std::size_t bytes, unsigned flags, void** out);
// Of the kind given, or of any where it is unknown.
int free_memory(void* address, MemoryKind kind);

int allocate_async(Stream& stream, Pool& pool, std::size_t bytes, void** out);
int free_async(Stream& stream, void* address);

}  // namespace simgpu
