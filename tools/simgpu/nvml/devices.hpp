// SPDX-License-Identifier: Apache-2.0
//
// NVML's handles and what every exported function checks first.
#pragma once

#include <cstdint>
#include <string>

#include "abi.hpp"
#include "function_fault.hpp"
#include "script.hpp"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu::nvml {

/// Counts nvmlInit and nvmlShutdown. [any thread]
void initialise();
bool shut_down();
bool is_initialised();

/// The handle of a device; null where there is none.
DeviceHandle handle_of(std::uint32_t index);
/// False for null and for what is no handle of ours.
bool is_handle(DeviceHandle device);

std::string uuid_text(std::uint32_t index);
/// "00000000:1B:00.0"
std::string bus_id_text(std::uint32_t index);

/// Runs the body of an exported function when NVML is initialised.
template <class Body>
int enter(const char* function, Body&& body) {
  if (const int fault = function_fault(function, kUnknown)) {
    return fault;
  }
  return is_initialised() ? body() : kUninitialized;
}

/// The same for a query of a device with one output, which must not be null.
template <class Output, class Body>
int query(const char* function, DeviceHandle device, Output* output, Body&& body) {
  return enter(function, [&]() -> int {
    return !is_handle(device) || output == nullptr ? kInvalidArgument : body(device->index);
  });
}

/// Writes the reading of a field, or says that it is not supported.
template <class Output>
int give(std::uint32_t device, Field field, Output* output) {
  const Reading reading = read_sensor(device, field);
  if (reading.state == Reading::State::kNotSupported) {
    return kNotSupported;
  }
  *output = static_cast<Output>(reading.number);
  return kSuccess;
}

/// Copies a text into a client's buffer, or says that it is too small.
int give_text(const std::string& text, char* buffer, unsigned length);

}  // namespace simgpu::nvml
