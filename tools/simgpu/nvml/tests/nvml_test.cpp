// SPDX-License-Identifier: Apache-2.0
//
// NVML by its binary interface: our declarations against nvml.h where it is installed, and what
// the functions answer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "../../cupti/tests/scripted_core.hpp"
#include "../abi.hpp"

// NVML 13 deprecates nvmlDeviceGetTemperature, which is what tools call.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#if __has_include(<nvml.h>)
#include <nvml.h>

using namespace simgpu::nvml;
static_assert(sizeof(Utilization) == sizeof(nvmlUtilization_t));
static_assert(sizeof(Memory) == sizeof(nvmlMemory_t));
static_assert(sizeof(MemoryV2) == sizeof(nvmlMemory_v2_t));
static_assert(offsetof(MemoryV2, used) == offsetof(nvmlMemory_v2_t, used));
static_assert(offsetof(MemoryV2, reserved) == offsetof(nvmlMemory_v2_t, reserved));
static_assert(sizeof(PciInfo) == sizeof(nvmlPciInfo_t));
static_assert(offsetof(PciInfo, bus_id) == offsetof(nvmlPciInfo_t, busId));
static_assert(sizeof(TemperatureV1) == sizeof(nvmlTemperature_v1_t));
static_assert(sizeof(ProcessInfo) == sizeof(nvmlProcessInfo_t));
static_assert(int{kNotSupported} == NVML_ERROR_NOT_SUPPORTED);
static_assert(int{kUninitialized} == NVML_ERROR_UNINITIALIZED);
static_assert(int{kInsufficientSize} == NVML_ERROR_INSUFFICIENT_SIZE);
static_assert(int{kClockTypeMemory} == NVML_CLOCK_MEM);
static_assert(int{kPcieRxBytes} == NVML_PCIE_UTIL_RX_BYTES);
#else
using namespace simgpu::nvml;
using nvmlDevice_t = DeviceHandle;
using nvmlUtilization_t = Utilization;
using nvmlMemory_t = Memory;
using nvmlPciInfo_t = PciInfo;
using nvmlProcessInfo_t = ProcessInfo;
extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
int nvmlDeviceGetCount_v2(unsigned*);
int nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice_t*);
int nvmlDeviceGetHandleByPciBusId_v2(const char*, nvmlDevice_t*);
int nvmlDeviceGetHandleByUUID(const char*, nvmlDevice_t*);
int nvmlDeviceGetName(nvmlDevice_t, char*, unsigned);
int nvmlDeviceGetUUID(nvmlDevice_t, char*, unsigned);
int nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t*);
int nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t*);
int nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned*);
int nvmlDeviceGetFanSpeed(nvmlDevice_t, unsigned*);
int nvmlDeviceGetTemperature(nvmlDevice_t, int, unsigned*);
int nvmlDeviceGetPciInfo_v3(nvmlDevice_t, nvmlPciInfo_t*);
int nvmlDeviceGetMigMode(nvmlDevice_t, unsigned*, unsigned*);
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*);
int nvmlDeviceGetPcieThroughput(nvmlDevice_t, int, unsigned*);
int nvmlDeviceGetClockInfo(nvmlDevice_t, int, unsigned*);
int nvmlDeviceGetSerial(nvmlDevice_t, char*, unsigned);
const char* nvmlErrorString(int);
}
#define NVML_TEMPERATURE_GPU 0
#define NVML_PCIE_UTIL_TX_BYTES 0
#define NVML_CLOCK_SM 1
#endif

using simgpu::testing::in_own_process;

namespace {

// Writes a script and makes it the process's.
void use_script(const std::string& text) {
  char path[] = "/tmp/simgpu_nvml_XXXXXX";
  const int file = mkstemp(path);
  ASSERT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(file);
  setenv("SIMGPU_NVML", path, 1);
}

nvmlDevice_t first_device() {
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(static_cast<int>(nvmlInit_v2()), kSuccess);
  EXPECT_EQ(static_cast<int>(nvmlDeviceGetHandleByIndex_v2(0, &device)), kSuccess);
  return device;
}

void forget_script() { unlink(std::getenv("SIMGPU_NVML")); }

}  // namespace

TEST(Nvml, NothingAnswersBeforeInitAndAfterTheLastShutdown) {
  in_own_process("", [] {
    unsigned count = 0;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetCount_v2(&count)), kUninitialized);
    EXPECT_EQ(static_cast<int>(nvmlInit_v2()), kSuccess);
    EXPECT_EQ(static_cast<int>(nvmlInit_v2()), kSuccess);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetCount_v2(&count)), kSuccess);
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(static_cast<int>(nvmlShutdown()), kSuccess);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetCount_v2(&count)), kSuccess);
    EXPECT_EQ(static_cast<int>(nvmlShutdown()), kSuccess);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetCount_v2(&count)), kUninitialized);
    EXPECT_EQ(static_cast<int>(nvmlShutdown()), kUninitialized);
  });
}

TEST(Nvml, ADeviceIsFoundByIndexBusAndUuid) {
  in_own_process("", [] {
    nvmlDevice_t device = first_device();
    nvmlPciInfo_t pci{};
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetPciInfo_v3(device, &pci)), kSuccess);
    char uuid[96] = {};
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetUUID(device, uuid, sizeof uuid)), kSuccess);
    EXPECT_STREQ(uuid, "GPU-abcd0000-0000-0000-0000-000000000000");
    nvmlDevice_t found = nullptr;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetHandleByUUID(uuid, &found)), kSuccess);
    EXPECT_EQ(found, device);
    found = nullptr;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetHandleByPciBusId_v2("0000:1b:00.0", &found)),
              kSuccess);
    EXPECT_EQ(found, device);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetHandleByPciBusId_v2("00000000:1B:00.0", &found)),
              kSuccess);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetHandleByPciBusId_v2("0000:1c:00.0", &found)),
              kNotFound);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetHandleByIndex_v2(1, &found)), kInvalidArgument);
    char name[64] = {};
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetName(device, name, sizeof name)), kSuccess);
    EXPECT_STREQ(name, "Scripted GPU");
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetName(device, name, 5)), kInsufficientSize);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetName(nullptr, name, 5)), kInvalidArgument);
  });
}

TEST(Nvml, SensorsReadWhatTheScriptSays) {
  in_own_process("", [] {
    use_script(
        "0 * utilization.gpu=87 utilization.memory=40 power=650000 temperature=61 "
        "pcie.tx=1200 clock.sm=1410\n");
    nvmlDevice_t device = first_device();
    nvmlUtilization_t rates{};
    unsigned value = 0;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetUtilizationRates(device, &rates)), kSuccess);
    EXPECT_EQ(rates.gpu, 87U);
    EXPECT_EQ(rates.memory, 40U);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetPowerUsage(device, &value)), kSuccess);
    EXPECT_EQ(value, 650'000U);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &value)),
              kSuccess);
    EXPECT_EQ(value, 61U);
    EXPECT_EQ(
        static_cast<int>(nvmlDeviceGetPcieThroughput(device, NVML_PCIE_UTIL_TX_BYTES, &value)),
        kSuccess);
    EXPECT_EQ(value, 1'200U);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &value)), kSuccess);
    EXPECT_EQ(value, 1'410U);
    forget_script();
  });
}

TEST(Nvml, AnyFieldCanBeNotSupportedAndItsOutputStaysAsItWas) {
  in_own_process("", [] {
    use_script("0 * power=n/a utilization.gpu=n/a processes=n/a memory=n/a name=n/a\n");
    nvmlDevice_t device = first_device();
    unsigned value = 4'711;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetPowerUsage(device, &value)), kNotSupported);
    EXPECT_EQ(value, 4'711U);
    nvmlUtilization_t rates{};
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetUtilizationRates(device, &rates)), kNotSupported);
    unsigned count = 0;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr)),
              kNotSupported);
    nvmlMemory_t memory{};
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetMemoryInfo(device, &memory)), kNotSupported);
    char name[64] = {};
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetName(device, name, sizeof name)), kNotSupported);
    forget_script();
  });
}

TEST(Nvml, WithoutAScriptADataCentreBoardHasNoFan) {
  in_own_process("", [] {
    unsigned percent = 0;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetFanSpeed(first_device(), &percent)), kNotSupported);
  });
}

TEST(Nvml, UnderMigThereIsNoUtilisation) {
  in_own_process("", [] {
    use_script("0 * mig=1\n");
    nvmlDevice_t device = first_device();
    unsigned current = 0;
    unsigned pending = 0;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetMigMode(device, &current, &pending)), kSuccess);
    EXPECT_EQ(current, 1U);
    nvmlUtilization_t rates{};
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetUtilizationRates(device, &rates)), kNotSupported);
    forget_script();
  });
}

TEST(Nvml, TheProcessListAsksForRoomFirst) {
  in_own_process("", [] {
    nvmlDevice_t device = first_device();
    unsigned count = 0;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, nullptr)),
              kInsufficientSize);
    EXPECT_EQ(count, 1U);
    nvmlProcessInfo_t info{};
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, &info)),
              kSuccess);
    EXPECT_EQ(info.pid, static_cast<unsigned>(getpid()));
  });
}

TEST(Nvml, TheNthCallOfAFunctionFailsAsAsked) {
  in_own_process("nvmlDeviceGetPowerUsage:nth=2,error=15", [] {
    nvmlDevice_t device = first_device();
    unsigned value = 0;
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetPowerUsage(device, &value)), kSuccess);
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetPowerUsage(device, &value)), 15);  // GPU is lost
  });
}

TEST(Nvml, UnmodelledFunctionsAreNotSupported) {
  in_own_process("", [] {
    char serial[32] = {};
    EXPECT_EQ(static_cast<int>(nvmlDeviceGetSerial(first_device(), serial, sizeof serial)),
              kNotSupported);
    EXPECT_STREQ(nvmlErrorString(static_cast<decltype(nvmlInit_v2())>(kNotSupported)),
                 "Not Supported");
  });
}
