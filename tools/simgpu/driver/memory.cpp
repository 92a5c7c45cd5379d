// SPDX-License-Identifier: Apache-2.0
//
// Allocation, and what can be asked about a pointer.
#include "driver/entry.hpp"

namespace {

CUresult allocate_device(MemoryKind kind, std::size_t bytes, unsigned flags, CUdeviceptr* out) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (driver_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  void* memory = nullptr;
  const int error = allocate(kind, bytes, flags, &memory);
  *out = reinterpret_cast<CUdeviceptr>(memory);
  return as_result(error);
}

CUresult allocate_host(std::size_t bytes, unsigned flags, void** out) {
  if (driver_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return as_result(allocate(MemoryKind::pinned, bytes, flags, out));
}

template <typename T>
CUresult put(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

CUresult pointer_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  const Lock guard = Engine::get().lock();
  const Allocation* allocation = find_allocation(pointer(ptr));
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool host = allocation->kind == MemoryKind::pinned;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put<CUcontext>(
          data, reinterpret_cast<CUcontext>(all_devices()[allocation->device]->primary));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<CUmemorytype>(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put<CUdeviceptr>(data, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return host ? put<void*>(data, pointer(ptr)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned>(data, allocation->kind == MemoryKind::managed ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(data, static_cast<int>(allocation->device));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(data, allocation->base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<std::size_t>(data, allocation->bytes);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

SIMGPU_DRIVER(cuMemAlloc_v2) {
  return allocate_device(MemoryKind::device, p.bytesize, 0, p.dptr);
}
SIMGPU_DRIVER(cuMemAllocManaged) {
  return allocate_device(MemoryKind::managed, p.bytesize, p.flags, p.dptr);
}
SIMGPU_DRIVER(cuMemFree_v2) {
  return as_result(free_memory(pointer(p.dptr), MemoryKind::device));
}
SIMGPU_DRIVER(cuMemAllocHost_v2) {
  return allocate_host(p.bytesize, 0, p.pp);
}
SIMGPU_DRIVER(cuMemHostAlloc) {
  return allocate_host(p.bytesize, p.Flags, p.pp);
}
SIMGPU_DRIVER(cuMemFreeHost) {
  return as_result(free_memory(p.p, MemoryKind::pinned));
}

SIMGPU_DRIVER(cuMemHostRegister_v2) {
  const Context* context = driver_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Lock guard = Engine::get().lock();
  return as_result(register_host_memory(p.p, p.bytesize, p.Flags, context->device->id));
}

SIMGPU_DRIVER(cuMemHostUnregister) {
  const Lock guard = Engine::get().lock();
  return as_result(unregister_host_memory(p.p));
}

SIMGPU_DRIVER(cuMemHostGetDevicePointer_v2) {
  const Lock guard = Engine::get().lock();
  if (p.pdptr == nullptr || memory_kind(p.p) != MemoryKind::pinned) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *p.pdptr = reinterpret_cast<CUdeviceptr>(p.p);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuMemGetInfo_v2) {
  const Context* context = driver_context();
  if (p.free == nullptr || p.total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Lock guard = Engine::get().lock();
  *p.total = context->device->description.memory_bytes;
  *p.free = *p.total - context->device->used_bytes;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuMemGetAddressRange_v2) {
  const Lock guard = Engine::get().lock();
  const Allocation* allocation = find_allocation(pointer(p.dptr));
  if (allocation == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (p.pbase != nullptr) *p.pbase = allocation->base;
  if (p.psize != nullptr) *p.psize = allocation->bytes;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuMemAllocAsync) {
  if (p.dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(p.hStream, [&](Stream& s) {
    void* memory = nullptr;
    const int error = allocate_async(s, *current_pool(*s.context->device), p.bytesize, &memory);
    *p.dptr = reinterpret_cast<CUdeviceptr>(memory);
    return error;
  });
}

SIMGPU_DRIVER(cuMemFreeAsync) {
  return with_stream(p.hStream, [&](Stream& s) { return free_async(s, pointer(p.dptr)); });
}

SIMGPU_DRIVER(cuPointerGetAttribute) {
  if (p.data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return pointer_attribute(p.data, p.attribute, p.ptr);
}

SIMGPU_DRIVER(cuPointerGetAttributes) {
  if (p.attributes == nullptr || p.data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < p.numAttributes; ++i) {
    // Unlike the single form, this one answers for any pointer: what is unknown reads as null.
    const CUresult result = pointer_attribute(p.data[i], p.attributes[i], p.ptr);
    if (result == CUDA_ERROR_NOT_SUPPORTED) return result;
    if (result == CUDA_ERROR_INVALID_VALUE) {
      const bool is_int = p.attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                          p.attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED;
      if (p.attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
        put<int>(p.data[i], -2);
      } else if (is_int) {
        put<int>(p.data[i], 0);
      } else {
        put<void*>(p.data[i], nullptr);
      }
    }
  }
  return CUDA_SUCCESS;
}
