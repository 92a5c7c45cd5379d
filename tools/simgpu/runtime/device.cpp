// SPDX-License-Identifier: Apache-2.0
//
// Devices: choosing one, asking about it, waiting for it.
#include "runtime/entry.hpp"

#include <cstdio>
#include <cstring>

#include "core/attributes.hpp"

SIMGPU_RUNTIME(cudaGetDeviceCount) {
  if (p.count == nullptr) return cudaErrorInvalidValue;
  *p.count = 0;
  if (const int error = initialise_driver()) return as_error(error);
  *p.count = static_cast<int>(all_devices().size());
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaSetDevice) {
  if (!is_device(p.device)) return cudaErrorInvalidDevice;
  ThreadState& thread = thread_state();
  thread.device = static_cast<std::uint32_t>(p.device);
  Context* context = primary_context(*all_devices()[thread.device]);
  if (thread.contexts.empty()) {
    thread.contexts.push_back(context);
  } else {
    thread.contexts.back() = context;
  }
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaInitDevice) {
  if (!is_device(p.device)) return cudaErrorInvalidDevice;
  primary_context(*all_devices()[static_cast<std::size_t>(p.device)]);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGetDevice) {
  if (p.device == nullptr) return cudaErrorInvalidValue;
  const ThreadState& thread = thread_state();
  *p.device = static_cast<int>(thread.contexts.empty() ? thread.device
                                                       : thread.contexts.back()->device->id);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaSetValidDevices) {
  for (int i = 0; i < p.len; ++i) {
    if (!is_device(p.device_arr[i])) return cudaErrorInvalidDevice;
  }
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaChooseDevice) {
  if (p.device == nullptr) return cudaErrorInvalidValue;
  *p.device = 0;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaSetDeviceFlags) {
  current_device()->flags = p.flags;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGetDeviceFlags) {
  if (p.flags == nullptr) return cudaErrorInvalidValue;
  *p.flags = current_device()->flags | cudaDeviceMapHost;
  return cudaSuccess;
}

SIMGPU_RUNTIME_VOID(cudaDeviceSynchronize) {
  return as_error(synchronize_device(*current_device()));
}

// Takes away the memory and the error of the device. Its streams and events keep their handles,
// which a program must not use any more.
SIMGPU_RUNTIME_VOID(cudaDeviceReset) {
  Device* device = current_device();
  Lock guard = Engine::get().lock();
  Engine::get().wait_device(guard, *device, "device_reset");
  device->sticky_error = 0;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaGetDeviceProperties) {
  if (p.prop == nullptr) return cudaErrorInvalidValue;
  if (!is_device(p.device)) return cudaErrorInvalidDevice;
  const Device& device = *all_devices()[static_cast<std::size_t>(p.device)];
  const DeviceDescription& d = device.description;
  cudaDeviceProp& prop = *p.prop;
  std::memset(&prop, 0, sizeof prop);
  std::snprintf(prop.name, sizeof prop.name, "%s", d.name);
  std::memcpy(&prop.uuid, d.uuid, sizeof prop.uuid);
  prop.totalGlobalMem = d.memory_bytes;
  prop.totalConstMem = 65536;
  const auto attribute = [&](int id) { return device_attribute(device, id).value_or(0); };
  prop.sharedMemPerBlock = static_cast<std::size_t>(attribute(8));
  prop.regsPerBlock = attribute(12);
  prop.warpSize = attribute(10);
  prop.memPitch = static_cast<std::size_t>(attribute(11));
  prop.maxThreadsPerBlock = attribute(1);
  for (int i = 0; i < 3; ++i) {
    prop.maxThreadsDim[i] = attribute(2 + i);
    prop.maxGridSize[i] = attribute(5 + i);
  }
  prop.major = static_cast<int>(d.compute_major);
  prop.minor = static_cast<int>(d.compute_minor);
  prop.textureAlignment = 512;
  prop.texturePitchAlignment = 32;
  prop.multiProcessorCount = static_cast<int>(d.multiprocessors);
  prop.canMapHostMemory = 1;
  prop.concurrentKernels = 1;
  prop.ECCEnabled = 1;
  prop.pciBusID = static_cast<int>(d.pci_bus_id);
  prop.asyncEngineCount = attribute(40);
  prop.unifiedAddressing = 1;
  prop.memoryBusWidth = attribute(37);
  prop.l2CacheSize = static_cast<int>(d.l2_bytes);
  prop.persistingL2CacheMaxSize = static_cast<int>(d.l2_bytes / 2);
  prop.maxThreadsPerMultiProcessor = attribute(39);
  prop.streamPrioritiesSupported = 1;
  prop.globalL1CacheSupported = 1;
  prop.localL1CacheSupported = 1;
  prop.sharedMemPerMultiprocessor = static_cast<std::size_t>(attribute(81));
  prop.regsPerMultiprocessor = attribute(82);
  prop.managedMemory = 1;
  prop.concurrentManagedAccess = 1;
  prop.computePreemptionSupported = 1;
  prop.canUseHostPointerForRegisteredMem = 1;
  prop.cooperativeLaunch = 1;
  prop.sharedMemPerBlockOptin = static_cast<std::size_t>(attribute(97));
  prop.maxBlocksPerMultiProcessor = attribute(106);
  prop.reservedSharedMemPerBlock = 1024;
  prop.hostRegisterSupported = 1;
  prop.memoryPoolsSupported = 1;
  prop.ipcEventSupported = 0;
  prop.clusterLaunch = 1;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaDeviceGetAttribute) {
  if (p.value == nullptr) return cudaErrorInvalidValue;
  if (!is_device(p.device)) return cudaErrorInvalidDevice;
  const Device& device = *all_devices()[static_cast<std::size_t>(p.device)];
  const std::optional<int> value = device_attribute(device, static_cast<int>(p.attr));
  if (!value) return cudaErrorInvalidValue;
  *p.value = *value;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaDeviceGetPCIBusId) {
  if (p.pciBusId == nullptr || p.len < 13) return cudaErrorInvalidValue;
  if (!is_device(p.device)) return cudaErrorInvalidDevice;
  const Device& device = *all_devices()[static_cast<std::size_t>(p.device)];
  std::snprintf(p.pciBusId, static_cast<std::size_t>(p.len), "0000:%02X:00.0",
                device.description.pci_bus_id);
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaDeviceGetByPCIBusId) {
  if (p.device == nullptr || p.pciBusId == nullptr) return cudaErrorInvalidValue;
  unsigned domain = 0;
  unsigned bus = 0;
  if (std::sscanf(p.pciBusId, "%x:%x", &domain, &bus) != 2) return cudaErrorInvalidValue;
  for (const Device* device : all_devices()) {
    if (device->description.pci_bus_id != bus) continue;
    *p.device = static_cast<int>(device->id);
    return cudaSuccess;
  }
  return cudaErrorInvalidDevice;
}

SIMGPU_RUNTIME(cudaDeviceCanAccessPeer) {
  if (p.canAccessPeer == nullptr) return cudaErrorInvalidValue;
  if (!is_device(p.device) || !is_device(p.peerDevice)) return cudaErrorInvalidDevice;
  *p.canAccessPeer = p.device != p.peerDevice ? 1 : 0;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaDeviceEnablePeerAccess) {
  Device* device = current_device();
  if (!is_device(p.peerDevice) || static_cast<std::uint32_t>(p.peerDevice) == device->id) {
    return cudaErrorInvalidDevice;
  }
  const Lock guard = Engine::get().lock();
  const bool added = device->peers.insert(static_cast<std::uint32_t>(p.peerDevice)).second;
  return added ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}

SIMGPU_RUNTIME(cudaDeviceDisablePeerAccess) {
  Device* device = current_device();
  const Lock guard = Engine::get().lock();
  const auto erased = device->peers.erase(static_cast<std::uint32_t>(p.peerDevice));
  return erased != 0 ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
}

SIMGPU_RUNTIME(cudaDeviceGetP2PAttribute) {
  if (p.value == nullptr) return cudaErrorInvalidValue;
  if (!is_device(p.srcDevice) || !is_device(p.dstDevice)) return cudaErrorInvalidDevice;
  *p.value = p.attr == cudaDevP2PAttrPerformanceRank ? 0 : 1;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaDeviceGetLimit) {
  if (p.pValue == nullptr) return cudaErrorInvalidValue;
  switch (p.limit) {
    case cudaLimitStackSize:
      *p.pValue = 1024;
      return cudaSuccess;
    case cudaLimitPrintfFifoSize:
      *p.pValue = 1U << 20;
      return cudaSuccess;
    case cudaLimitMallocHeapSize:
      *p.pValue = 8U << 20;
      return cudaSuccess;
    default:
      return cudaErrorUnsupportedLimit;
  }
}

// No kernel runs, so no limit of one matters.
SIMGPU_RUNTIME(cudaDeviceSetLimit) {
  return cudaSuccess;
}
SIMGPU_RUNTIME(cudaDeviceSetCacheConfig) {
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaDeviceGetCacheConfig) {
  if (p.pCacheConfig == nullptr) return cudaErrorInvalidValue;
  *p.pCacheConfig = cudaFuncCachePreferNone;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaDriverGetVersion) {
  if (p.driverVersion == nullptr) return cudaErrorInvalidValue;
  *p.driverVersion = CUDART_VERSION;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaRuntimeGetVersion) {
  if (p.runtimeVersion == nullptr) return cudaErrorInvalidValue;
  *p.runtimeVersion = CUDART_VERSION;
  return cudaSuccess;
}

SIMGPU_RUNTIME_VOID(cudaProfilerStart) {
  return cudaSuccess;
}
SIMGPU_RUNTIME_VOID(cudaProfilerStop) {
  return cudaSuccess;
}
SIMGPU_RUNTIME_VOID(cudaCtxResetPersistingL2Cache) {
  return cudaSuccess;
}
