// SPDX-License-Identifier: Apache-2.0
//
// The exported functions of NVML that say what a device is: names, places, MIG, processes.
#include <unistd.h>

#include <cstring>
#include <string>

#include "../core/listener.hpp"
#include "devices.hpp"

using namespace simgpu::nvml;

namespace {

bool is_hidden(std::uint32_t device, Field field) {
  return scripted(device, field).state == Reading::State::kNotSupported;
}

int fill_pci(std::uint32_t index, PciInfo* info) {
  *info = {};
  const std::string id = bus_id_text(index);
  info->bus = simgpu::device_description(index).pci_bus_id;
  info->pci_device_id = 0x233010de;  // an H100
  std::memcpy(info->bus_id, id.c_str(), id.size() + 1);
  std::memcpy(info->bus_id_legacy, id.c_str() + 4, id.size() - 3);
  return kSuccess;
}

// The process list knows this process only, and only once it has used a device.
template <class Info, class Fill>
int list_processes(const char* function, DeviceHandle device, unsigned* count, Info* infos,
                   Fill&& fill) {
  return query(function, device, count, [&](std::uint32_t index) -> int {
    if (is_hidden(index, Field::kProcesses)) {
      return kNotSupported;
    }
    const unsigned room = *count;
    const unsigned running = simgpu::driver_initialised() ? 1 : 0;
    *count = running;
    if (room < running) {
      return kInsufficientSize;
    }
    if (running > 0 && infos == nullptr) {
      return kInvalidArgument;
    }
    if (running > 0) {
      infos[0] = {};
      infos[0].pid = static_cast<unsigned>(getpid());
      infos[0].used_memory = simgpu::device_memory_used(index);
      fill(infos[0]);
    }
    return kSuccess;
  });
}

int list_with_instances(const char* function, DeviceHandle device, unsigned* count,
                        ProcessInfo* infos) {
  return list_processes(function, device, count, infos, [](ProcessInfo& info) {
    info.gpu_instance_id = kNoInstance;
    info.compute_instance_id = kNoInstance;
  });
}

// Graphics and MPS processes: there are none.
int list_none(const char* function, DeviceHandle device, unsigned* count) {
  return query(function, device, count, [&](std::uint32_t) -> int {
    *count = 0;
    return kSuccess;
  });
}

}  // namespace

SIMGPU_EXPORT int nvmlDeviceGetName(DeviceHandle device, char* name, unsigned length) {
  return query("nvmlDeviceGetName", device, name, [&](std::uint32_t index) -> int {
    return is_hidden(index, Field::kName)
               ? kNotSupported
               : give_text(simgpu::device_description(index).name, name, length);
  });
}

SIMGPU_EXPORT int nvmlDeviceGetUUID(DeviceHandle device, char* uuid, unsigned length) {
  return query("nvmlDeviceGetUUID", device, uuid, [&](std::uint32_t index) -> int {
    return is_hidden(index, Field::kUuid) ? kNotSupported
                                          : give_text(uuid_text(index), uuid, length);
  });
}

SIMGPU_EXPORT int nvmlDeviceGetIndex(DeviceHandle device, unsigned* index) {
  return query("nvmlDeviceGetIndex", device, index, [&](std::uint32_t own) -> int {
    *index = own;
    return kSuccess;
  });
}

SIMGPU_EXPORT int nvmlDeviceGetMinorNumber(DeviceHandle device, unsigned* minor) {
  return query("nvmlDeviceGetMinorNumber", device, minor, [&](std::uint32_t own) -> int {
    *minor = own;
    return kSuccess;
  });
}

SIMGPU_EXPORT int nvmlDeviceGetPciInfo_v3(DeviceHandle device, PciInfo* info) {
  return query("nvmlDeviceGetPciInfo_v3", device, info,
               [&](std::uint32_t index) { return fill_pci(index, info); });
}

SIMGPU_EXPORT int nvmlDeviceGetCudaComputeCapability(DeviceHandle device, int* major,
                                                     int* minor) {
  return query("nvmlDeviceGetCudaComputeCapability", device, major,
               [&](std::uint32_t index) -> int {
                 if (minor == nullptr) {
                   return kInvalidArgument;
                 }
                 const auto& description = simgpu::device_description(index);
                 *major = static_cast<int>(description.compute_major);
                 *minor = static_cast<int>(description.compute_minor);
                 return kSuccess;
               });
}

SIMGPU_EXPORT int nvmlDeviceGetComputeRunningProcesses(DeviceHandle device, unsigned* count,
                                                       ProcessInfoV1* infos) {
  return list_processes("nvmlDeviceGetComputeRunningProcesses", device, count, infos,
                        [](ProcessInfoV1&) {});
}
SIMGPU_EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(DeviceHandle device, unsigned* count,
                                                          ProcessInfo* infos) {
  return list_with_instances("nvmlDeviceGetComputeRunningProcesses_v2", device, count, infos);
}
SIMGPU_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(DeviceHandle device, unsigned* count,
                                                          ProcessInfo* infos) {
  return list_with_instances("nvmlDeviceGetComputeRunningProcesses_v3", device, count, infos);
}
SIMGPU_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(DeviceHandle device, unsigned* count,
                                                           ProcessInfo*) {
  return list_none("nvmlDeviceGetGraphicsRunningProcesses_v3", device, count);
}
SIMGPU_EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(DeviceHandle device, unsigned* count,
                                                             ProcessInfo*) {
  return list_none("nvmlDeviceGetMPSComputeRunningProcesses_v3", device, count);
}

// MIG is a mode that a script may switch on; its instances are not modelled.

SIMGPU_EXPORT int nvmlDeviceGetMigMode(DeviceHandle device, unsigned* current,
                                       unsigned* pending) {
  return query("nvmlDeviceGetMigMode", device, current, [&](std::uint32_t index) -> int {
    if (pending == nullptr) {
      return kInvalidArgument;
    }
    const int result = give(index, Field::kMigMode, current);
    if (result == kSuccess) {
      *pending = *current;
    }
    return result;
  });
}

SIMGPU_EXPORT int nvmlDeviceIsMigDeviceHandle(DeviceHandle device, unsigned* is_mig) {
  return query("nvmlDeviceIsMigDeviceHandle", device, is_mig, [&](std::uint32_t) -> int {
    *is_mig = 0;
    return kSuccess;
  });
}

SIMGPU_EXPORT int nvmlDeviceGetMaxMigDeviceCount(DeviceHandle device, unsigned* count) {
  return query("nvmlDeviceGetMaxMigDeviceCount", device, count, [&](std::uint32_t index) -> int {
    unsigned mode = 0;
    *count = give(index, Field::kMigMode, &mode) == kSuccess ? 7 : 0;
    return kSuccess;
  });
}

SIMGPU_EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(DeviceHandle device, unsigned,
                                                      DeviceHandle* mig) {
  return query("nvmlDeviceGetMigDeviceHandleByIndex", device, mig,
               [](std::uint32_t) -> int { return kNotFound; });
}
