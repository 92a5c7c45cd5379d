// SPDX-License-Identifier: Apache-2.0
//
// NVML's fields, each of which may be "not supported".
#include <dlfcn.h>
#include <fmt/format.h>
#include <nvml.h>
#include <unistd.h>

#include "checks.hpp"

namespace gpudiag::device {
namespace {

using Nvml = Check;

// Found at run time, as the library must do: a machine without a driver has no NVML.
template <class Function>
Function* nvml(Function*, const char* name) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}
#define NVML(function) nvml(&function, #function)

/// A result that a reader of NVML must be ready for.
bool is_answer(nvmlReturn_t result) { return result == NVML_SUCCESS || result == NVML_ERROR_NOT_SUPPORTED; }

nvmlDevice_t first_device() {
  nvmlDevice_t device{};
  auto* const init = nvml(&nvmlInit_v2, "nvmlInit_v2");
  auto* const handle = nvml(&nvmlDeviceGetHandleByIndex_v2, "nvmlDeviceGetHandleByIndex_v2");
  if (init == nullptr || handle == nullptr) {
    ADD_FAILURE() << "there is no libnvidia-ml.so.1";
    return device;
  }
  EXPECT_EQ(init(), NVML_SUCCESS);
  EXPECT_EQ(handle(0, &device), NVML_SUCCESS);
  return device;
}

TEST_F(Nvml, FieldsHaveAValueOrAreNotSupported) {
  row(44);
  const nvmlDevice_t device = first_device();
  ASSERT_FALSE(HasFailure());
  nvmlUtilization_t use{};
  unsigned clock = 0, power = 0, heat = 0;
  unsigned long long reasons = 0;
  const nvmlReturn_t got[] = {
      NVML(nvmlDeviceGetUtilizationRates)(device, &use),
      NVML(nvmlDeviceGetClockInfo)(device, NVML_CLOCK_SM, &clock),
      NVML(nvmlDeviceGetPowerUsage)(device, &power),
      NVML(nvmlDeviceGetTemperature)(device, NVML_TEMPERATURE_GPU, &heat),
      NVML(nvmlDeviceGetCurrentClocksThrottleReasons)(device, &reasons),
  };
  measured(fmt::format("utilisation {} %, SM {} MHz, {} mW, {} C, throttle {:#x}", use.gpu, clock, power, heat,
                       reasons));
  for (const nvmlReturn_t result : got) EXPECT_TRUE(is_answer(result)) << result;
  if (got[0] == NVML_SUCCESS) {
    EXPECT_LE(use.gpu, 100u);
  }
  if (got[1] == NVML_SUCCESS) {
    EXPECT_GT(clock, 0u);
  }
}

TEST_F(Nvml, TheProcessListHoldsThisProcess) {
  row(27);
  ASSERT_CUDA(cudaFree(nullptr));
  const nvmlDevice_t device = first_device();
  ASSERT_FALSE(HasFailure());
  auto* const list = nvml(&nvmlDeviceGetComputeRunningProcesses_v3, "nvmlDeviceGetComputeRunningProcesses_v3");
  ASSERT_NE(list, nullptr);
  nvmlProcessInfo_t found[64];
  unsigned count = 64;
  ASSERT_EQ(list(device, &count, found), NVML_SUCCESS);
  measured(fmt::format("{} processes", count));
  bool us = false;
  for (unsigned i = 0; i < count; ++i) us = us || found[i].pid == static_cast<unsigned>(getpid());
  EXPECT_TRUE(us) << "in a container NVML may tell the host's process ids";
}

}  // namespace
}  // namespace gpudiag::device
