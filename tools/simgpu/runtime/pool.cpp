// SPDX-License-Identifier: Apache-2.0
//
// Memory pools of stream-ordered allocation.
#include "runtime/entry.hpp"

#include "core/allocation.hpp"

namespace {

cudaMemPool_t handle(Pool* pool) {
  return reinterpret_cast<cudaMemPool_t>(pool);
}

template <typename T>
void put(void* value, T what) {
  *static_cast<T*>(value) = what;
}

}  // namespace

SIMGPU_RUNTIME(cudaDeviceGetDefaultMemPool) {
  if (p.memPool == nullptr) return cudaErrorInvalidValue;
  if (!is_device(p.device)) return cudaErrorInvalidDevice;
  *p.memPool = handle(default_pool(*all_devices()[static_cast<std::size_t>(p.device)]));
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaDeviceGetMemPool) {
  if (p.memPool == nullptr) return cudaErrorInvalidValue;
  if (!is_device(p.device)) return cudaErrorInvalidDevice;
  *p.memPool = handle(current_pool(*all_devices()[static_cast<std::size_t>(p.device)]));
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaDeviceSetMemPool) {
  Pool* pool = find_pool(p.memPool);
  if (!is_device(p.device)) return cudaErrorInvalidDevice;
  Device& device = *all_devices()[static_cast<std::size_t>(p.device)];
  if (pool == nullptr || pool->device != &device) return cudaErrorInvalidValue;
  current_pool(device) = pool;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaMemPoolCreate) {
  if (p.memPool == nullptr || p.poolProps == nullptr) return cudaErrorInvalidValue;
  if (p.poolProps->location.type != cudaMemLocationTypeDevice) return cudaErrorNotSupported;
  if (!is_device(p.poolProps->location.id)) return cudaErrorInvalidDevice;
  auto* pool = new Pool;  // kept for ever: late uses of the handle are recognised
  pool->device = all_devices()[static_cast<std::size_t>(p.poolProps->location.id)];
  *p.memPool = handle(pool);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaMemPoolDestroy) {
  Pool* pool = find_pool(p.memPool);
  if (pool == nullptr || pool == default_pool(*pool->device)) return cudaErrorInvalidValue;
  Pool*& current = current_pool(*pool->device);
  if (current == pool) current = default_pool(*pool->device);
  pool->magic = 0;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaMemPoolTrimTo) {
  return find_pool(p.memPool) == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}

SIMGPU_RUNTIME(cudaMemPoolSetAccess) {
  return find_pool(p.memPool) == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}

SIMGPU_RUNTIME(cudaMemPoolGetAccess) {
  if (find_pool(p.memPool) == nullptr || p.flags == nullptr) return cudaErrorInvalidValue;
  *p.flags = cudaMemAccessFlagsProtReadWrite;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaMemPoolSetAttribute) {
  const Lock guard = Engine::get().lock();
  Pool* pool = find_pool(p.memPool);
  if (pool == nullptr || p.value == nullptr) return cudaErrorInvalidValue;
  switch (p.attr) {
    case cudaMemPoolAttrReleaseThreshold:
      pool->release_threshold = *static_cast<const std::uint64_t*>(p.value);
      return cudaSuccess;
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      pool->reuse[p.attr - cudaMemPoolReuseFollowEventDependencies] =
          *static_cast<const int*>(p.value);
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemHigh:
    case cudaMemPoolAttrReservedMemHigh:
      pool->used_high_bytes = pool->used_bytes;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

SIMGPU_RUNTIME(cudaMemPoolGetAttribute) {
  const Lock guard = Engine::get().lock();
  const Pool* pool = find_pool(p.memPool);
  if (pool == nullptr || p.value == nullptr) return cudaErrorInvalidValue;
  switch (p.attr) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      put(p.value, pool->reuse[p.attr - cudaMemPoolReuseFollowEventDependencies]);
      return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
      put(p.value, pool->release_threshold);
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
      put(p.value, pool->used_bytes);
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
      put(p.value, pool->used_high_bytes);
      return cudaSuccess;
    default:
      return cudaErrorNotSupported;
  }
}
