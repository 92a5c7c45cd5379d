// SPDX-License-Identifier: Apache-2.0
//
// The part of NVML's binary interface that is modelled, declared here because the toolkit has no
// nvml.h. Names without NVML's prefix; layouts and numbers are NVML's (the tests compare them
// with nvml.h where it is installed).
#pragma once

#include <cstdint>

namespace simgpu::nvml {

// nvmlReturn_t
enum Result : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kFunctionNotFound = 13,
  kUnknown = 999
};

// nvmlClockType_t
enum ClockType : int { kClockTypeGraphics = 0, kClockTypeSm = 1, kClockTypeMemory = 2, kClockTypeVideo = 3 };

// nvmlPcieUtilCounter_t
enum PcieCounter : int { kPcieTxBytes = 0, kPcieRxBytes = 1 };

// nvmlUtilization_t
struct Utilization {
  unsigned gpu;
  unsigned memory;
};

// nvmlMemory_t
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// nvmlMemory_v2_t
struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

// nvmlPciInfo_t, the third version
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

// nvmlTemperature_v1_t
struct TemperatureV1 {
  unsigned version;
  int sensor;
  int temperature;
};

// nvmlProcessInfo_v1_t
struct ProcessInfoV1 {
  unsigned pid;
  unsigned long long used_memory;
};

// nvmlProcessInfo_v2_t and nvmlProcessInfo_t
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};

constexpr unsigned kNoInstance = 0xffffffff;

// What an nvmlDevice_t points at: one object per device, so that a handle can be checked.
struct Device {
  std::uint32_t index;
};
using DeviceHandle = Device*;

}  // namespace simgpu::nvml
