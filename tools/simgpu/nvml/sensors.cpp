// SPDX-License-Identifier: Apache-2.0
//
// What a simulated device reads where no script speaks: clocks at their boost, power and
// temperature that follow how busy the device was lately.
#include <algorithm>
#include <mutex>
#include <vector>

#include "../core/listener.hpp"
#include "script.hpp"

namespace simgpu::nvml {
namespace {

// NVML's utilisation covers a sample period between 1/6 s and 1 s, depending on the product.
constexpr std::int64_t kWindowNs = 166'000'000;

struct Window {
  std::int64_t at_ns = 0;
  std::int64_t busy_ns = 0;
  std::int64_t percent = 0;
};

// Share of the last whole window in which a kernel ran.
std::int64_t busy_percent(std::uint32_t device) {
  static auto* const mutex = new std::mutex;
  static auto* const windows = new std::vector<Window>;
  const std::int64_t now = now_ns();
  const std::int64_t busy = device_busy_ns(device);
  const std::lock_guard lock(*mutex);
  if (windows->size() <= device) {
    windows->resize(device + 1);
  }
  Window& window = (*windows)[device];
  if (window.at_ns == 0) {
    window = {now, busy, 0};
  } else if (now - window.at_ns >= kWindowNs) {
    const std::int64_t percent = 100 * (busy - window.busy_ns) / (now - window.at_ns);
    window = {now, busy, std::clamp<std::int64_t>(percent, 0, 100)};
  }
  return window.percent;
}

}  // namespace

std::int64_t unscripted(std::uint32_t device, Field field) {
  const DeviceDescription& description = device_description(device);
  switch (field) {
    case Field::kUtilizationGpu:
      return busy_percent(device);
    case Field::kUtilizationMemory:
      return busy_percent(device) / 2;
    case Field::kClockGraphics:
    case Field::kClockSm:
      return description.core_clock_khz / 1'000;
    case Field::kClockMemory:
      return 2'619;
    case Field::kClockVideo:
      return 1'545;
    case Field::kPower:
      return 75'000 + 5'000 * busy_percent(device);
    case Field::kPowerLimit:
      return 700'000;
    case Field::kEnergy:
      // 75 W idle, 500 W more while a kernel runs; W × ns / 10⁶ = mJ.
      return 75 * (now_ns() / 1'000'000) + 500 * (device_busy_ns(device) / 1'000'000);
    case Field::kTemperature:
      return 32 + busy_percent(device) / 3;
    case Field::kPcieGeneration:
      return 5;
    case Field::kPcieWidth:
      return 16;
    case Field::kMemoryUsed:
      return static_cast<std::int64_t>(device_memory_used(device));
    default:
      return 0;
  }
}

Reading read_sensor(std::uint32_t device, Field field) {
  const Reading said = scripted(device, field);
  if (said.state != Reading::State::kUnset) {
    return said;
  }
  if (field == Field::kFan) {
    return {Reading::State::kNotSupported, 0};  // data centre boards have none
  }
  const bool utilisation = field == Field::kUtilizationGpu || field == Field::kUtilizationMemory;
  if (utilisation && scripted(device, Field::kMigMode).number != 0) {
    return {Reading::State::kNotSupported, 0};  // NVML does not attribute it to instances
  }
  return {Reading::State::kNumber, unscripted(device, field)};
}

}  // namespace simgpu::nvml
