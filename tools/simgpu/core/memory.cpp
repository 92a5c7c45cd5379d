// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "engine.hpp"
#include "options.hpp"

namespace simgpu {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kAlreadyRegistered = 712;
constexpr int kNotRegistered = 713;
// cudaMalloc aligns to 256 bytes at least and hands out multiples of 512.
constexpr std::size_t kGranularity = 512;
// Above this a mapping of its own costs less than touching every page.
constexpr std::size_t kMappedBytes = 1U << 18;
constexpr std::size_t kPage = 4096;

using Allocations = std::map<std::uintptr_t, Allocation>;

// Leaked on purpose, as all state here.
Allocations& allocations() {
  static auto* const kAllocations = new Allocations;
  return *kAllocations;
}

std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

void* back(std::size_t bytes, bool& mapped) {
  mapped = bytes >= kMappedBytes;
  if (mapped) {
    void* memory = mmap(nullptr, round_up(bytes, kPage), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  void* memory = std::aligned_alloc(kGranularity, bytes);
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return memory;
}

bool uses_device_memory(MemoryKind kind) {
  return kind == MemoryKind::device || kind == MemoryKind::managed ||
         kind == MemoryKind::device_static;
}

}  // namespace

int allocate_memory(MemoryKind kind, Device& device, std::size_t bytes, unsigned flags,
                    void** out) {
  *out = nullptr;
  if (bytes == 0) return 0;
  if (bytes > SIZE_MAX / 2) return kOutOfMemory;
  const std::size_t size = round_up(bytes, kGranularity);
  const bool charged = uses_device_memory(kind);
  if (charged && size > device.description.memory_bytes - device.used_bytes) return kOutOfMemory;
  bool mapped = false;
  void* memory = back(size, mapped);
  if (memory == nullptr) return kOutOfMemory;
  if (charged) {
    device.used_bytes += size;
    device.used_high_bytes = std::max(device.used_high_bytes, device.used_bytes);
  }
  const auto base = reinterpret_cast<std::uintptr_t>(memory);
  Allocation allocation;
  allocation.base = base;
  allocation.bytes = bytes;
  allocation.kind = kind;
  allocation.device = device.id;
  allocation.flags = flags;
  allocation.mapped = mapped;
  allocations().emplace(base, allocation);
  *out = memory;
  return 0;
}

int register_host_memory(void* address, std::size_t bytes, unsigned flags, std::uint32_t device) {
  if (address == nullptr || bytes == 0) return kInvalidValue;
  if (find_allocation(address) != nullptr) return kAlreadyRegistered;
  Allocation allocation;
  allocation.base = reinterpret_cast<std::uintptr_t>(address);
  allocation.bytes = bytes;
  allocation.kind = MemoryKind::pinned;
  allocation.device = device;
  allocation.flags = flags;
  allocation.registered = true;
  allocations().emplace(allocation.base, allocation);
  return 0;
}

int unregister_host_memory(void* address) {
  const auto at = allocations().find(reinterpret_cast<std::uintptr_t>(address));
  if (at == allocations().end() || !at->second.registered) return kNotRegistered;
  allocations().erase(at);
  return 0;
}

Allocation* find_allocation(const void* address) {
  const auto key = reinterpret_cast<std::uintptr_t>(address);
  auto at = allocations().upper_bound(key);
  if (at == allocations().begin()) return nullptr;
  --at;
  return key < at->second.base + at->second.bytes ? &at->second : nullptr;
}

int release_memory(void* address) {
  const auto at = allocations().find(reinterpret_cast<std::uintptr_t>(address));
  if (at == allocations().end() || at->second.registered) return kInvalidValue;
  const Allocation& allocation = at->second;
  const std::size_t size = round_up(allocation.bytes, kGranularity);
  if (uses_device_memory(allocation.kind)) all_devices()[allocation.device]->used_bytes -= size;
  if (allocation.mapped) {
    munmap(address, round_up(size, kPage));
  } else {
    std::free(address);
  }
  allocations().erase(at);
  return 0;
}

MemoryKind memory_kind(const void* address) {
  const Allocation* allocation = find_allocation(address);
  return allocation == nullptr ? MemoryKind::pageable : allocation->kind;
}

// The engine's half of a retirement: what the operation does to memory. The bytes really moved
// are capped, since large moves would dominate the cost of the simulation and nobody computes.
void Engine::apply(Operation& operation) {
  Effect& effect = operation.effect;
  if (effect.type == Effect::Type::none) return;
  if (effect.type == Effect::Type::release) {
    release_memory(effect.dst);
    return;
  }
  std::size_t left = static_cast<std::size_t>(options().max_moved_bytes);
  auto* dst = static_cast<std::byte*>(effect.dst);
  const auto* src =
      static_cast<const std::byte*>(operation.staging ? operation.staging.get() : effect.src);
  const std::size_t src_pitch = operation.staging ? effect.width : effect.src_pitch;
  for (std::size_t row = 0; row < effect.height && left > 0; ++row) {
    const std::size_t bytes = std::min(left, effect.width);
    if (effect.type == Effect::Type::copy) {
      std::memmove(dst, src, bytes);
      src += src_pitch;
    } else if (effect.value_bytes == 1) {
      std::memset(dst, static_cast<int>(effect.value), bytes);
    } else {
      for (std::size_t i = 0; i + effect.value_bytes <= bytes; i += effect.value_bytes) {
        std::memcpy(dst + i, &effect.value, effect.value_bytes);
      }
    }
    dst += effect.dst_pitch;
    left -= bytes;
  }
}

}  // namespace simgpu
