// SPDX-License-Identifier: Apache-2.0
//
// Initialisation, devices, errors.
#include "driver/entry.hpp"

#include <cstdio>
#include <cstring>

#include "core/attributes.hpp"
#include "core/error_names.hpp"

SIMGPU_DRIVER(cuInit) {
  if (p.Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return as_result(initialise_driver());
}

SIMGPU_DRIVER(cuDriverGetVersion) {
  if (p.driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *p.driverVersion = CUDA_VERSION;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuGetErrorString) {
  const ErrorText* text = find_error_text(static_cast<int>(p.error));
  if (p.pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *p.pStr = text == nullptr ? nullptr : text->description;
  return text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuGetErrorName) {
  const ErrorText* text = find_error_text(static_cast<int>(p.error));
  if (p.pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *p.pStr = text == nullptr ? nullptr : text->driver_name;
  return text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDeviceGetCount) {
  if (p.count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *p.count = static_cast<int>(all_devices().size());
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDeviceGet) {
  if (p.device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (find_device(p.ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *p.device = p.ordinal;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDeviceGetName) {
  const Device* device = find_device(p.dev);
  if (p.name == nullptr || p.len <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(p.name, static_cast<std::size_t>(p.len), "%s", device->description.name);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDeviceGetUuid_v2) {
  const Device* device = find_device(p.dev);
  if (p.uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::memcpy(p.uuid, device->description.uuid, sizeof *p.uuid);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDeviceTotalMem_v2) {
  const Device* device = find_device(p.dev);
  if (p.bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *p.bytes = device->description.memory_bytes;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDeviceGetAttribute) {
  const Device* device = find_device(p.dev);
  if (p.pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const std::optional<int> value = device_attribute(*device, static_cast<int>(p.attrib));
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  *p.pi = *value;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDeviceComputeCapability) {
  const Device* device = find_device(p.dev);
  if (p.major == nullptr || p.minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *p.major = static_cast<int>(device->description.compute_major);
  *p.minor = static_cast<int>(device->description.compute_minor);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDeviceGetPCIBusId) {
  const Device* device = find_device(p.dev);
  if (p.pciBusId == nullptr || p.len < 13) return CUDA_ERROR_INVALID_VALUE;
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(p.pciBusId, static_cast<std::size_t>(p.len), "0000:%02X:00.0",
                device->description.pci_bus_id);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuDeviceCanAccessPeer) {
  if (p.canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (find_device(p.dev) == nullptr || find_device(p.peerDev) == nullptr) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *p.canAccessPeer = p.dev != p.peerDev ? 1 : 0;
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER_VOID(cuProfilerStart) {
  return CUDA_SUCCESS;
}
SIMGPU_DRIVER_VOID(cuProfilerStop) {
  return CUDA_SUCCESS;
}
