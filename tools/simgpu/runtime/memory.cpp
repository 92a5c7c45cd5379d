// SPDX-License-Identifier: Apache-2.0
//
// Allocation: device, pinned, managed, stream ordered; what can be asked about a pointer.
#include "runtime/entry.hpp"

#include <cstring>

#include "core/allocation.hpp"

namespace {

constexpr std::size_t kPitch = 512;

cudaError_t allocate_pitched(std::size_t width, std::size_t rows, void** out, std::size_t* pitch) {
  if (pitch == nullptr) return cudaErrorInvalidValue;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return as_error(allocate(MemoryKind::device, *pitch * rows, 0, out));
}

cudaMemoryType type_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::pageable:
    case MemoryKind::unknown:
      return cudaMemoryTypeUnregistered;
    case MemoryKind::pinned:
      return cudaMemoryTypeHost;
    case MemoryKind::managed:
    case MemoryKind::managed_static:
      return cudaMemoryTypeManaged;
    default:
      return cudaMemoryTypeDevice;
  }
}

}  // namespace

SIMGPU_RUNTIME(cudaMalloc) {
  return as_error(allocate(MemoryKind::device, p.size, 0, p.devPtr));
}

SIMGPU_RUNTIME(cudaMallocPitch) {
  return allocate_pitched(p.width, p.height, p.devPtr, p.pitch);
}

SIMGPU_RUNTIME(cudaMalloc3D) {
  if (p.pitchedDevPtr == nullptr) return cudaErrorInvalidValue;
  p.pitchedDevPtr->xsize = p.extent.width;
  p.pitchedDevPtr->ysize = p.extent.height;
  return allocate_pitched(p.extent.width, p.extent.height * p.extent.depth, &p.pitchedDevPtr->ptr,
                          &p.pitchedDevPtr->pitch);
}

SIMGPU_RUNTIME(cudaMallocHost) {
  return as_error(allocate(MemoryKind::pinned, p.size, 0, p.ptr));
}

SIMGPU_RUNTIME(cudaHostAlloc) {
  return as_error(allocate(MemoryKind::pinned, p.size, p.flags, p.pHost));
}

SIMGPU_RUNTIME(cudaMallocManaged) {
  if (p.flags != cudaMemAttachGlobal && p.flags != cudaMemAttachHost) return cudaErrorInvalidValue;
  if (p.size == 0) return cudaErrorInvalidValue;
  return as_error(allocate(MemoryKind::managed, p.size, p.flags, p.devPtr));
}

SIMGPU_RUNTIME(cudaFree) {
  return as_error(free_memory(p.devPtr, MemoryKind::device));
}
SIMGPU_RUNTIME(cudaFreeHost) {
  return as_error(free_memory(p.ptr, MemoryKind::pinned));
}

SIMGPU_RUNTIME(cudaHostRegister) {
  const Device* device = current_device();
  const Lock guard = Engine::get().lock();
  return as_error(register_host_memory(p.ptr, p.size, p.flags, device->id));
}

SIMGPU_RUNTIME(cudaHostUnregister) {
  Device* device = current_device();
  Lock guard = Engine::get().lock();
  if (const int error = Engine::get().wait_device(guard, *device, "memory_free")) {
    return as_error(error);
  }
  return as_error(unregister_host_memory(p.ptr));
}

SIMGPU_RUNTIME(cudaHostGetDevicePointer) {
  const Lock guard = Engine::get().lock();
  if (p.pDevice == nullptr || memory_kind(p.pHost) != MemoryKind::pinned) {
    return cudaErrorInvalidValue;
  }
  *p.pDevice = p.pHost;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaHostGetFlags) {
  const Lock guard = Engine::get().lock();
  const Allocation* allocation = find_allocation(p.pHost);
  if (p.pFlags == nullptr || allocation == nullptr || allocation->kind != MemoryKind::pinned) {
    return cudaErrorInvalidValue;
  }
  *p.pFlags = allocation->flags | cudaHostAllocMapped;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaMemGetInfo) {
  const Device* device = current_device();
  const Lock guard = Engine::get().lock();
  if (p.free == nullptr || p.total == nullptr) return cudaErrorInvalidValue;
  *p.total = device->description.memory_bytes;
  *p.free = device->description.memory_bytes - device->used_bytes;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaPointerGetAttributes) {
  if (p.attributes == nullptr) return cudaErrorInvalidValue;
  const Lock guard = Engine::get().lock();
  std::memset(p.attributes, 0, sizeof *p.attributes);
  const Allocation* allocation = find_allocation(p.ptr);
  p.attributes->type = type_of(allocation == nullptr ? MemoryKind::pageable : allocation->kind);
  p.attributes->device = allocation == nullptr ? -2 : static_cast<int>(allocation->device);
  void* address = const_cast<void*>(p.ptr);
  if (p.attributes->type != cudaMemoryTypeUnregistered) p.attributes->devicePointer = address;
  if (p.attributes->type != cudaMemoryTypeDevice) p.attributes->hostPointer = address;
  return cudaSuccess;
}

// Where pages of managed memory lie makes no difference to the simulation.
SIMGPU_RUNTIME(cudaMemAdvise) {
  return cudaSuccess;
}
SIMGPU_RUNTIME(cudaMemPrefetchAsync) {
  return with_stream(p.stream, [](Stream&) { return 0; });
}

SIMGPU_RUNTIME(cudaMallocAsync) {
  return with_stream(p.hStream, [&](Stream& s) {
    return allocate_async(s, *current_pool(*s.context->device), p.size, p.devPtr);
  });
}

SIMGPU_RUNTIME(cudaFreeAsync) {
  return with_stream(p.hStream, [&](Stream& s) { return free_async(s, p.devPtr); });
}

SIMGPU_RUNTIME(cudaMallocFromPoolAsync) {
  Pool* pool = find_pool(p.memPool);
  if (pool == nullptr) return cudaErrorInvalidValue;
  return with_stream(p.stream, [&](Stream& s) { return allocate_async(s, *pool, p.size, p.ptr); });
}
