// SPDX-License-Identifier: Apache-2.0
//
// The exported functions of NVML that read sensors: each answers the script's word, or what the
// simulated device does.
#include "../core/listener.hpp"
#include "devices.hpp"

using namespace simgpu::nvml;

namespace {

template <class Output>
int read_one(const char* function, DeviceHandle device, Field field, Output* output) {
  return query(function, device, output,
               [&](std::uint32_t index) { return give(index, field, output); });
}

// False where there is no such clock.
bool clock_field(int type, Field& field) {
  switch (type) {
    case kClockTypeGraphics:
      field = Field::kClockGraphics;
      return true;
    case kClockTypeSm:
      field = Field::kClockSm;
      return true;
    case kClockTypeMemory:
      field = Field::kClockMemory;
      return true;
    case kClockTypeVideo:
      field = Field::kClockVideo;
      return true;
    default:
      return false;
  }
}

int read_clock(const char* function, DeviceHandle device, int type, unsigned* clock) {
  Field field{};
  return clock_field(type, field) ? read_one(function, device, field, clock)
                                  : enter(function, []() -> int { return kInvalidArgument; });
}

// Total, reserved by the driver, used and free bytes.
int read_memory(std::uint32_t index, MemoryV2* memory) {
  if (scripted(index, Field::kMemory).state == Reading::State::kNotSupported) {
    return kNotSupported;
  }
  constexpr unsigned long long kReserved = 512ULL << 20;
  unsigned long long used = 0;
  if (const int result = give(index, Field::kMemoryUsed, &used)) {
    return result;
  }
  memory->total = simgpu::device_description(index).memory_bytes + kReserved;
  memory->reserved = kReserved;
  memory->used = used;
  memory->free = memory->total - kReserved - used;
  return kSuccess;
}

}  // namespace

SIMGPU_EXPORT int nvmlDeviceGetUtilizationRates(DeviceHandle device, Utilization* rates) {
  return query("nvmlDeviceGetUtilizationRates", device, rates, [&](std::uint32_t index) -> int {
    const int result = give(index, Field::kUtilizationGpu, &rates->gpu);
    return result != kSuccess ? result : give(index, Field::kUtilizationMemory, &rates->memory);
  });
}

SIMGPU_EXPORT int nvmlDeviceGetMemoryInfo(DeviceHandle device, Memory* memory) {
  return query("nvmlDeviceGetMemoryInfo", device, memory, [&](std::uint32_t index) -> int {
    MemoryV2 full{};
    const int result = read_memory(index, &full);
    if (result == kSuccess) {
      // The first version counts what the driver reserves as used.
      *memory = {full.total, full.free, full.used + full.reserved};
    }
    return result;
  });
}

SIMGPU_EXPORT int nvmlDeviceGetMemoryInfo_v2(DeviceHandle device, MemoryV2* memory) {
  return query("nvmlDeviceGetMemoryInfo_v2", device, memory,
               [&](std::uint32_t index) { return read_memory(index, memory); });
}

SIMGPU_EXPORT int nvmlDeviceGetClockInfo(DeviceHandle device, int type, unsigned* clock) {
  return read_clock("nvmlDeviceGetClockInfo", device, type, clock);
}

SIMGPU_EXPORT int nvmlDeviceGetMaxClockInfo(DeviceHandle device, int type, unsigned* clock) {
  return query("nvmlDeviceGetMaxClockInfo", device, clock, [&](std::uint32_t index) -> int {
    Field field{};
    if (!clock_field(type, field)) {
      return kInvalidArgument;
    }
    *clock = static_cast<unsigned>(unscripted(index, field));
    return kSuccess;
  });
}

SIMGPU_EXPORT int nvmlDeviceGetClock(DeviceHandle device, int type, int, unsigned* clock) {
  return read_clock("nvmlDeviceGetClock", device, type, clock);
}

SIMGPU_EXPORT int nvmlDeviceGetPowerUsage(DeviceHandle device, unsigned* milliwatts) {
  return read_one("nvmlDeviceGetPowerUsage", device, Field::kPower, milliwatts);
}
SIMGPU_EXPORT int nvmlDeviceGetPowerManagementLimit(DeviceHandle device, unsigned* milliwatts) {
  return read_one("nvmlDeviceGetPowerManagementLimit", device, Field::kPowerLimit, milliwatts);
}
SIMGPU_EXPORT int nvmlDeviceGetEnforcedPowerLimit(DeviceHandle device, unsigned* milliwatts) {
  return read_one("nvmlDeviceGetEnforcedPowerLimit", device, Field::kPowerLimit, milliwatts);
}
SIMGPU_EXPORT int nvmlDeviceGetTotalEnergyConsumption(DeviceHandle device,
                                                      unsigned long long* millijoules) {
  return read_one("nvmlDeviceGetTotalEnergyConsumption", device, Field::kEnergy, millijoules);
}

SIMGPU_EXPORT int nvmlDeviceGetTemperature(DeviceHandle device, int sensor, unsigned* degrees) {
  return sensor == 0
             ? read_one("nvmlDeviceGetTemperature", device, Field::kTemperature, degrees)
             : enter("nvmlDeviceGetTemperature", []() -> int { return kInvalidArgument; });
}

SIMGPU_EXPORT int nvmlDeviceGetTemperatureV(DeviceHandle device, TemperatureV1* reading) {
  return query("nvmlDeviceGetTemperatureV", device, reading, [&](std::uint32_t index) -> int {
    return reading->sensor == 0 ? give(index, Field::kTemperature, &reading->temperature)
                                : kInvalidArgument;
  });
}

SIMGPU_EXPORT int nvmlDeviceGetFanSpeed(DeviceHandle device, unsigned* percent) {
  return read_one("nvmlDeviceGetFanSpeed", device, Field::kFan, percent);
}

SIMGPU_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(DeviceHandle device,
                                                            unsigned long long* reasons) {
  return read_one("nvmlDeviceGetCurrentClocksThrottleReasons", device, Field::kThrottleReasons,
                  reasons);
}
SIMGPU_EXPORT int nvmlDeviceGetCurrentClocksEventReasons(DeviceHandle device,
                                                         unsigned long long* reasons) {
  return read_one("nvmlDeviceGetCurrentClocksEventReasons", device, Field::kThrottleReasons,
                  reasons);
}

SIMGPU_EXPORT int nvmlDeviceGetPcieThroughput(DeviceHandle device, int counter,
                                              unsigned* kilobytes_per_s) {
  return counter == kPcieTxBytes || counter == kPcieRxBytes
             ? read_one("nvmlDeviceGetPcieThroughput", device,
                        counter == kPcieTxBytes ? Field::kPcieTx : Field::kPcieRx,
                        kilobytes_per_s)
             : enter("nvmlDeviceGetPcieThroughput", []() -> int { return kInvalidArgument; });
}
SIMGPU_EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(DeviceHandle device, unsigned* generation) {
  return read_one("nvmlDeviceGetCurrPcieLinkGeneration", device, Field::kPcieGeneration,
                  generation);
}
SIMGPU_EXPORT int nvmlDeviceGetCurrPcieLinkWidth(DeviceHandle device, unsigned* lanes) {
  return read_one("nvmlDeviceGetCurrPcieLinkWidth", device, Field::kPcieWidth, lanes);
}
SIMGPU_EXPORT int nvmlDeviceGetPcieReplayCounter(DeviceHandle device, unsigned* count) {
  return read_one("nvmlDeviceGetPcieReplayCounter", device, Field::kPcieReplays, count);
}

SIMGPU_EXPORT int nvmlDeviceGetPerformanceState(DeviceHandle device, int* state) {
  return read_one("nvmlDeviceGetPerformanceState", device, Field::kPerformanceState, state);
}
SIMGPU_EXPORT int nvmlDeviceGetPowerState(DeviceHandle device, int* state) {
  return read_one("nvmlDeviceGetPowerState", device, Field::kPerformanceState, state);
}

// Uncorrected errors are counted, corrected ones never happen.
SIMGPU_EXPORT int nvmlDeviceGetTotalEccErrors(DeviceHandle device, int type, int,
                                              unsigned long long* count) {
  return query("nvmlDeviceGetTotalEccErrors", device, count, [&](std::uint32_t index) -> int {
    const int result = give(index, Field::kEccErrors, count);
    if (result == kSuccess && type == 0) {
      *count = 0;
    }
    return result;
  });
}
