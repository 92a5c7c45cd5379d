// SPDX-License-Identifier: Apache-2.0
#include "devices.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "../core/listener.hpp"

namespace simgpu::nvml {
namespace {

std::atomic<int> g_initialised{0};

std::vector<Device>& devices() {
  static auto* const all = [] {
    auto* made = new std::vector<Device>;
    for (std::uint32_t index = 0; index < device_count(); ++index) {
      made->push_back({index});
    }
    return made;
  }();
  return *all;
}

}  // namespace

void initialise() { ++g_initialised; }

bool shut_down() {
  int count = g_initialised.load();
  while (count > 0 && !g_initialised.compare_exchange_weak(count, count - 1)) {
  }
  return count > 0;
}

bool is_initialised() { return g_initialised.load() > 0; }

DeviceHandle handle_of(std::uint32_t index) {
  return index < devices().size() ? &devices()[index] : nullptr;
}

bool is_handle(DeviceHandle device) {
  return !devices().empty() && device >= devices().data() &&
         device < devices().data() + devices().size();
}

std::string uuid_text(std::uint32_t index) {
  const auto& u = device_description(index).uuid;
  return fmt::format(
      "GPU-{:02x}{:02x}{:02x}{:02x}-{:02x}{:02x}-{:02x}{:02x}-{:02x}{:02x}-"
      "{:02x}{:02x}{:02x}{:02x}{:02x}{:02x}",
      u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
      u[15]);
}

std::string bus_id_text(std::uint32_t index) {
  return fmt::format("00000000:{:02X}:00.0", device_description(index).pci_bus_id);
}

int give_text(const std::string& text, char* buffer, unsigned length) {
  if (buffer == nullptr) {
    return kInvalidArgument;
  }
  if (length <= text.size()) {
    return kInsufficientSize;
  }
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace simgpu::nvml
