// SPDX-License-Identifier: Apache-2.0
//
// What surrounds a call: errors, notices, versions, the ways to the driver.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cupti_runtime_cbid.h>
#include <generated_cuda_runtime_api_meta.h>

#include <algorithm>
#include <thread>

#include "harness.hpp"

namespace simgpu_test {
namespace {

TEST(Error, AnInvalidLaunchIsRememberedUntilItIsRead) {
  EXPECT_EQ(launch_timed(1, nullptr, dim3(1), dim3(2048)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Error, TheLastErrorIsTheThreadsOwn) {
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Error, NamesAndTextsAreThoseOfCuda) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

TEST(Error, WhatIsNotModelledSaysSo) {
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format =
      cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  EXPECT_EQ(cudaMallocArray(&array, &format, 8, 8, 0), cudaErrorNotSupported);
  EXPECT_EQ(array, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST(Error, AKernelNobodyRegisteredIsRefused) {
  void* arguments[] = {nullptr};
  EXPECT_EQ(cudaLaunchKernel(&arguments, dim3(1), dim3(1), arguments, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
}

TEST(Notices, ACallIsToldWithItsIdsParametersAndResult) {
  Recording recording;
  ASSERT_EQ(launch_timed(1000, nullptr), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  recording.finish();
  const auto calls = recording.calls();
  ASSERT_GE(calls.size(), 2U);
  EXPECT_EQ(calls[0].function, "cudaLaunchKernel");
  EXPECT_EQ(calls[0].cbid, static_cast<unsigned>(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
  EXPECT_EQ(calls[0].symbol, "timed");
  EXPECT_TRUE(calls[0].exited);
  EXPECT_EQ(calls[0].result, 0);
  EXPECT_EQ(calls[0].correlation_id, recording.kernels().at(0).correlation_id);
  EXPECT_EQ(calls[1].function, "cudaSetDevice");
  EXPECT_EQ(calls[1].symbol, "");
  EXPECT_EQ(calls[1].result, static_cast<int>(cudaErrorInvalidDevice));
  EXPECT_GT(calls[1].correlation_id, calls[0].correlation_id);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Notices, AFunctionThatWasTakenOutIsNotTold) {
  Recording recording;
  simgpu::set_wanted_call(simgpu::ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, false);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  ASSERT_EQ(launch_timed(1000, nullptr), cudaSuccess);
  simgpu::set_wanted_call(simgpu::ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, true);
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  recording.finish();
  const auto calls = recording.calls();
  ASSERT_GE(calls.size(), 2U);
  EXPECT_EQ(calls[0].function, "cudaLaunchKernel");
  EXPECT_EQ(calls[1].function, "cudaGetDevice");
}

TEST(Notices, AKernelRecordHasTheShapeOfItsLaunch) {
  Recording recording;
  ASSERT_EQ(launch_timed(1000, nullptr, dim3(3, 2, 1), dim3(64, 2, 1)), cudaSuccess);
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_STREQ(kernels[0].name, "timed");
  EXPECT_EQ(kernels[0].grid[0], 3);
  EXPECT_EQ(kernels[0].grid[1], 2);
  EXPECT_EQ(kernels[0].block[0], 64);
  EXPECT_EQ(kernels[0].block[1], 2);
  EXPECT_EQ(kernels[0].device_id, 0U);
}

TEST(Notices, EveryFunctionHasTheNameOfItsId) {
  EXPECT_STREQ(
      simgpu::api_name(simgpu::ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020),
      "cudaMemcpyAsync");
  EXPECT_STREQ(simgpu::api_name(simgpu::ApiDomain::driver, 1), "cuInit");
  EXPECT_EQ(simgpu::api_name(simgpu::ApiDomain::runtime, 99999), nullptr);
}

TEST(Driver, IsReachedByNameAndVersion) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  ASSERT_EQ(
      cudaGetDriverEntryPointByVersion("cuMemAlloc", &address, 12000, cudaEnableDefault, &found),
      cudaSuccess);
  ASSERT_EQ(found, cudaDriverEntryPointSuccess);
  using Allocate = CUresult (*)(CUdeviceptr*, std::size_t);
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  CUdeviceptr memory = 0;
  ASSERT_EQ(reinterpret_cast<Allocate>(address)(&memory, 256), CUDA_SUCCESS);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, reinterpret_cast<void*>(memory)), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice) << "runtime and driver share their memory";
  EXPECT_EQ(cudaFree(reinterpret_cast<void*>(memory)), cudaSuccess);
  ASSERT_EQ(
      cudaGetDriverEntryPointByVersion("cuNoSuchThing", &address, 12000, cudaEnableDefault, &found),
      cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(address, nullptr);
}

TEST(Driver, AFormNewerThanAskedForIsNotHandedOut) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuLaunchKernelEx", &address, 11000, cudaEnableDefault,
                                             &found),
            cudaSuccess);
  EXPECT_EQ(found, cudaDriverEntryPointVersionNotSufficent);
  EXPECT_EQ(address, nullptr);
}

TEST(Device, DescribesItself) {
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  EXPECT_STREQ(properties.name, "Simulated GPU");
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.totalGlobalMem, std::size_t{2} << 30);
  int value = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  EXPECT_EQ(value, properties.multiProcessorCount);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Device, OccupancyFollowsTheBlockSize) {
  int blocks = 0;
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, timed_function(), 256, 0),
            cudaSuccess);
  EXPECT_EQ(blocks, 8);
}

}  // namespace
}  // namespace simgpu_test
