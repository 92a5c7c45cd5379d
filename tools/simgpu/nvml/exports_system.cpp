// SPDX-License-Identifier: Apache-2.0
//
// The exported functions of NVML that concern no single device, and those that find devices.
#include <unistd.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <string>

#include "../core/listener.hpp"
#include "devices.hpp"

using namespace simgpu::nvml;

namespace {

constexpr const char* kDriverVersion = "580.65.06";
constexpr const char* kNvmlVersion = "13.580.65.06";
constexpr int kCudaVersion = 13'000;

int initialise_from(const char* function) {
  if (const int fault = simgpu::function_fault(function, kUnknown)) {
    return fault;
  }
  initialise();
  return kSuccess;
}

int count_devices(const char* function, unsigned* count) {
  return enter(function, [&]() -> int {
    if (count == nullptr) {
      return kInvalidArgument;
    }
    *count = simgpu::device_count();
    return kSuccess;
  });
}

int find_by_index(const char* function, unsigned index, DeviceHandle* device) {
  return enter(function, [&]() -> int {
    if (device == nullptr || handle_of(index) == nullptr) {
      return kInvalidArgument;
    }
    *device = handle_of(index);
    return kSuccess;
  });
}

// Finds the device whose text (upper case, and without a long domain's zeros) is `wanted`.
template <class TextOf>
int find_by_text(const char* function, const char* wanted, DeviceHandle* device, TextOf&& text_of) {
  return enter(function, [&]() -> int {
    if (device == nullptr || wanted == nullptr) {
      return kInvalidArgument;
    }
    std::string upper(wanted);
    for (char& c : upper) {
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    for (unsigned index = 0; index < simgpu::device_count(); ++index) {
      std::string text = text_of(index);
      for (char& c : text) {
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      }
      // "0000:1B:00.0" names the same device as "00000000:1B:00.0".
      if (upper == text || "0000" + upper == text) {
        *device = handle_of(index);
        return kSuccess;
      }
    }
    return kNotFound;
  });
}

}  // namespace

SIMGPU_EXPORT int nvmlInit() { return initialise_from("nvmlInit"); }
SIMGPU_EXPORT int nvmlInit_v2() { return initialise_from("nvmlInit_v2"); }
SIMGPU_EXPORT int nvmlInitWithFlags(unsigned) { return initialise_from("nvmlInitWithFlags"); }

SIMGPU_EXPORT int nvmlShutdown() {
  return enter("nvmlShutdown", [] { return shut_down() ? kSuccess : kUninitialized; });
}

SIMGPU_EXPORT const char* nvmlErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kFunctionNotFound:
      return "Function Not Found";
    default:
      return "Unknown Error";
  }
}

SIMGPU_EXPORT int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return enter("nvmlSystemGetDriverVersion",
               [&] { return give_text(kDriverVersion, version, length); });
}

SIMGPU_EXPORT int nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return enter("nvmlSystemGetNVMLVersion",
               [&] { return give_text(kNvmlVersion, version, length); });
}

SIMGPU_EXPORT int nvmlSystemGetCudaDriverVersion(int* version) {
  return enter("nvmlSystemGetCudaDriverVersion", [&]() -> int {
    if (version == nullptr) {
      return kInvalidArgument;
    }
    *version = kCudaVersion;
    return kSuccess;
  });
}

SIMGPU_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

SIMGPU_EXPORT int nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return enter("nvmlSystemGetProcessName", [&]() -> int {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    if (line.empty()) {
      return kNotFound;
    }
    return give_text(line.substr(0, line.find('\0')), name, length);
  });
}

SIMGPU_EXPORT int nvmlDeviceGetCount(unsigned* count) {
  return count_devices("nvmlDeviceGetCount", count);
}
SIMGPU_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  return count_devices("nvmlDeviceGetCount_v2", count);
}

SIMGPU_EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, DeviceHandle* device) {
  return find_by_index("nvmlDeviceGetHandleByIndex", index, device);
}
SIMGPU_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, DeviceHandle* device) {
  return find_by_index("nvmlDeviceGetHandleByIndex_v2", index, device);
}

SIMGPU_EXPORT int nvmlDeviceGetHandleByPciBusId(const char* id, DeviceHandle* device) {
  return find_by_text("nvmlDeviceGetHandleByPciBusId", id, device, bus_id_text);
}
SIMGPU_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* id, DeviceHandle* device) {
  return find_by_text("nvmlDeviceGetHandleByPciBusId_v2", id, device, bus_id_text);
}

SIMGPU_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, DeviceHandle* device) {
  return find_by_text("nvmlDeviceGetHandleByUUID", uuid, device, uuid_text);
}
