// SPDX-License-Identifier: Apache-2.0
#include "allocation.hpp"

#include <algorithm>

#include "engine.hpp"
#include "graph.hpp"
#include "notices.hpp"
#include "thread_state.hpp"

namespace simgpu {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kNotSupportedInCapture = 900;
constexpr std::uint32_t kNone = 0xffffffff;

// [locked] What is told of an allocation: the pool's counters are the lock's.
MemoryRecord describe(bool is_free, const Allocation& allocation, const Context& context,
                      const Stream* stream) {
  MemoryRecord record{};
  record.is_free = is_free;
  record.is_async = allocation.is_async;
  record.kind = allocation.kind;
  record.correlation_id = thread_state().correlation_id;
  record.address = allocation.base;
  record.bytes = allocation.bytes;
  record.timestamp_ns = now_ns();
  record.device_id = allocation.device;
  record.context_uid = context.uid;
  record.stream_id = stream == nullptr ? kNone : stream->id;
  if (const auto* pool = static_cast<const Pool*>(allocation.pool)) {
    record.pool_address = reinterpret_cast<std::uintptr_t>(pool);
    record.pool_release_threshold = pool->release_threshold;
    record.pool_bytes = pool->used_high_bytes;
    record.pool_used_bytes = pool->used_bytes;
  }
  return record;
}

// Without the lock: the listener may call CUDA.
void tell(const MemoryRecord& record) {
  if (listener_wants(kWantMemory)) notify_memory(record);
}

std::vector<Pool*>& current_pools() {
  static auto* const kPools = new std::vector<Pool*>(all_devices().size(), nullptr);
  return *kPools;
}

}  // namespace

Pool* find_pool(void* handle) {
  auto* pool = static_cast<Pool*>(handle);
  return pool != nullptr && pool->magic == kPoolMagic ? pool : nullptr;
}

Pool* default_pool(Device& device) {
  static auto* const kPools = [] {
    auto* pools = new std::vector<Pool*>;
    for (Device* each : all_devices()) {
      pools->push_back(new Pool);
      pools->back()->device = each;
    }
    return pools;
  }();
  return (*kPools)[device.id];
}

Pool*& current_pool(Device& device) {
  Pool*& pool = current_pools()[device.id];
  if (pool == nullptr) pool = default_pool(device);
  return pool;
}

int allocate(MemoryKind kind, std::size_t bytes, unsigned flags, void** out) {
  if (out == nullptr) return kInvalidValue;
  if (const int error = check_unsafe_call()) return error;
  Context* context = require_context();
  Device& device = *context->device;
  MemoryRecord made{};
  {
    Lock guard = Engine::get().lock();
    if (device.sticky_error != 0) return device.sticky_error;
    if (kind == MemoryKind::device) {
      if (const int error = Engine::get().wait_device(guard, device, "memory_allocation")) {
        return error;
      }
    }
    if (const int error = allocate_memory(kind, device, bytes, flags, out)) return error;
    if (*out == nullptr) return 0;
    made = describe(false, *find_allocation(*out), *context, nullptr);
  }
  tell(made);
  return 0;
}

int free_memory(void* address, MemoryKind kind) {
  if (address == nullptr) return 0;
  if (const int error = check_unsafe_call()) return error;
  Context* context = require_context();
  MemoryRecord told{};
  {
    Lock guard = Engine::get().lock();
    const Allocation* found = find_allocation(address);
    if (found == nullptr || found->base != reinterpret_cast<std::uintptr_t>(address) ||
        (kind == MemoryKind::pinned) != (found->kind == MemoryKind::pinned)) {
      return kInvalidValue;
    }
    // Every device may still use it: managed and pinned memory are visible to all.
    if (const int error =
            Engine::get().wait_device(guard, *all_devices()[found->device], "memory_free")) {
      return error;
    }
    found = find_allocation(address);
    if (found == nullptr) return kInvalidValue;  // freed by another thread while we waited
    const Allocation gone = *found;
    if (const int error = release_memory(address)) return error;
    if (auto* pool = static_cast<Pool*>(gone.pool)) pool->used_bytes -= gone.bytes;
    told = describe(true, gone, *context, nullptr);
  }
  tell(told);
  return 0;
}

int allocate_async(Stream& stream, Pool& pool, std::size_t bytes, void** out) {
  if (out == nullptr) return kInvalidValue;
  MemoryRecord made{};
  {
    const Lock guard = Engine::get().lock();
    if (stream.capture != nullptr) return kNotSupportedInCapture;
    if (const int error = allocate_memory(MemoryKind::device, *pool.device, bytes, 0, out)) {
      return error;
    }
    if (*out == nullptr) return 0;
    Allocation* allocation = find_allocation(*out);
    allocation->is_async = true;
    allocation->pool = &pool;
    pool.used_bytes += bytes;
    pool.used_high_bytes = std::max(pool.used_high_bytes, pool.used_bytes);
    made = describe(false, *allocation, *stream.context, &stream);
  }
  tell(made);
  return 0;
}

int free_async(Stream& stream, void* address) {
  if (address == nullptr) return 0;
  MemoryRecord told{};
  {
    const Lock guard = Engine::get().lock();
    if (stream.capture != nullptr) return kNotSupportedInCapture;
    const Allocation* found = find_allocation(address);
    if (found == nullptr || found->base != reinterpret_cast<std::uintptr_t>(address) ||
        found->kind != MemoryKind::device) {
      return kInvalidValue;
    }
    const Allocation gone = *found;
    if (auto* pool = static_cast<Pool*>(gone.pool)) pool->used_bytes -= gone.bytes;
    Operation* operation =
        Engine::get().create(OperationKind::marker, stream, thread_state().correlation_id);
    operation->effect.type = Effect::Type::release;
    operation->effect.dst = address;
    Engine::get().enqueue(operation);
    told = describe(true, gone, *stream.context, &stream);
  }
  tell(told);
  return 0;
}

}  // namespace simgpu
