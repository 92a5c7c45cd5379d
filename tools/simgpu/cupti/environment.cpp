// SPDX-License-Identifier: Apache-2.0
//
// ENVIRONMENT records: clocks, power and temperature, from the same sensors that NVML reads.
#include "../core/listener.hpp"
#include "../nvml/script.hpp"
#include "library.hpp"

namespace simgpu::cupti {
namespace {

using nvml::Field;
using nvml::Reading;

std::uint32_t sensor(std::uint32_t device, Field field) {
  const Reading reading = nvml::read_sensor(device, field);
  return reading.state == Reading::State::kNumber ? static_cast<std::uint32_t>(reading.number) : 0;
}

bool is_supported(std::uint32_t device, Field field) {
  return nvml::read_sensor(device, field).state == Reading::State::kNumber;
}

CUpti_ActivityEnvironment begin_record(std::uint32_t device, CUpti_ActivityEnvironmentKind kind,
                                       std::uint64_t now) {
  CUpti_ActivityEnvironment record{};
  record.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
  record.deviceId = device;
  record.timestamp = now;
  record.environmentKind = kind;
  return record;
}

void record_device(Library& lib, std::uint32_t device, std::uint64_t now) {
  auto speed = begin_record(device, CUPTI_ACTIVITY_ENVIRONMENT_SPEED, now);
  speed.data.speed.smClock = sensor(device, Field::kClockSm);
  speed.data.speed.memoryClock = sensor(device, Field::kClockMemory);
  speed.data.speed.pcieLinkGen = sensor(device, Field::kPcieGeneration);
  speed.data.speed.pcieLinkWidth = sensor(device, Field::kPcieWidth);
  // NVML's and CUPTI's reasons share their bits.
  speed.data.speed.clocksThrottleReasons = static_cast<CUpti_EnvironmentClocksThrottleReason>(
      sensor(device, Field::kThrottleReasons));
  lib.store.append(speed, "SPEED");
  if (is_supported(device, Field::kTemperature)) {
    auto heat = begin_record(device, CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE, now);
    heat.data.temperature.gpuTemperature = sensor(device, Field::kTemperature);
    lib.store.append(heat, "TEMPERATURE");
  }
  if (is_supported(device, Field::kPower)) {
    auto power = begin_record(device, CUPTI_ACTIVITY_ENVIRONMENT_POWER, now);
    power.data.power.power = sensor(device, Field::kPower);
    power.data.power.powerLimit = sensor(device, Field::kPowerLimit);
    lib.store.append(power, "POWER");
  }
  if (is_supported(device, Field::kFan)) {
    auto cooling = begin_record(device, CUPTI_ACTIVITY_ENVIRONMENT_COOLING, now);
    cooling.data.cooling.fanSpeed = sensor(device, Field::kFan);
    lib.store.append(cooling, "COOLING");
  }
}

}  // namespace

void record_environment() {
  Library& lib = library();
  const std::uint64_t now = lib.clock.host_timestamp(now_ns());
  for (std::uint32_t device = 0; device < device_count(); ++device) {
    record_device(lib, device, now);
  }
}

}  // namespace simgpu::cupti
