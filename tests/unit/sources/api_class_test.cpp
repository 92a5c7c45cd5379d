// SPDX-License-Identifier: Apache-2.0
#include "sources/api_class.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

using namespace record_flag;

TEST(ApiClass, RuntimeLaunchesAreLaunches) {
  EXPECT_EQ(api_traits("cudaLaunchKernel"), (ApiTraits{ApiClass::kLaunch, 0}));
  EXPECT_EQ(api_traits("cudaLaunchKernelExC"), (ApiTraits{ApiClass::kLaunch, 0}));
  EXPECT_EQ(api_traits("cudaLaunchCooperativeKernel"), (ApiTraits{ApiClass::kLaunch, 0}));
  EXPECT_EQ(api_traits("cudaGraphLaunch"), (ApiTraits{ApiClass::kGraphLaunch, 0}));
}

TEST(ApiClass, DriverCallsAreMarkedAsSuch) {
  EXPECT_EQ(api_traits("cuLaunchKernelEx"), (ApiTraits{ApiClass::kLaunch, kDriverApi}));
  EXPECT_EQ(api_traits("cuStreamSynchronize"), (ApiTraits{ApiClass::kStreamSync, kDriverApi}));
  EXPECT_EQ(api_traits("cuSomethingNew"), (ApiTraits{ApiClass::kOther, kDriverApi}));
}

TEST(ApiClass, VersionsAndStreamSuffixesDoNotMatter) {
  EXPECT_EQ(api_traits("cudaLaunchKernel_v7000").api, ApiClass::kLaunch);
  EXPECT_EQ(api_traits("cudaLaunchKernel_ptsz_v7000").api, ApiClass::kLaunch);
  EXPECT_EQ(api_traits("cuMemcpyHtoDAsync_v2").api, ApiClass::kMemcpyAsync);
  EXPECT_EQ(api_traits("__cudaLaunchKernel").api, ApiClass::kLaunch);
}

TEST(ApiClass, CopiesDifferByWhetherTheyReturnAtOnce) {
  EXPECT_EQ(api_traits("cudaMemcpy").api, ApiClass::kMemcpy);
  EXPECT_EQ(api_traits("cudaMemcpy2DToArray").api, ApiClass::kMemcpy);
  EXPECT_EQ(api_traits("cudaMemcpy3DPeerAsync").api, ApiClass::kMemcpyAsync);
  EXPECT_EQ(api_traits("cuMemcpyDtoH").api, ApiClass::kMemcpy);
  EXPECT_EQ(api_traits("cudaMemset2DAsync").api, ApiClass::kMemset);
  EXPECT_EQ(api_traits("cuMemsetD8Async").api, ApiClass::kMemset);
}

TEST(ApiClass, AllocationsDifferByWhatTheyAllocateAndWhetherTheyWait) {
  EXPECT_EQ(api_traits("cudaMalloc"), (ApiTraits{ApiClass::kMalloc, 0}));
  EXPECT_EQ(api_traits("cudaFree"), (ApiTraits{ApiClass::kFree, 0}));
  EXPECT_EQ(api_traits("cudaHostAlloc"), (ApiTraits{ApiClass::kHostMalloc, 0}));
  EXPECT_EQ(api_traits("cudaFreeHost"), (ApiTraits{ApiClass::kHostFree, 0}));
  EXPECT_EQ(api_traits("cudaMallocAsync"), (ApiTraits{ApiClass::kPoolMalloc, kBlocksNever}));
  EXPECT_EQ(api_traits("cudaFreeAsync"), (ApiTraits{ApiClass::kPoolFree, kBlocksNever}));
  EXPECT_EQ(api_traits("cuMemMap"), (ApiTraits{ApiClass::kMalloc, kDriverApi | kBlocksNever}));
  EXPECT_EQ(api_traits("cuMemUnmap"), (ApiTraits{ApiClass::kFree, kDriverApi}));
}

TEST(ApiClass, WaitsAndEventsAreToldApart) {
  EXPECT_EQ(api_traits("cudaStreamSynchronize").api, ApiClass::kStreamSync);
  EXPECT_EQ(api_traits("cudaDeviceSynchronize").api, ApiClass::kDeviceSync);
  EXPECT_EQ(api_traits("cudaEventSynchronize").api, ApiClass::kEventSync);
  EXPECT_EQ(api_traits("cudaEventRecordWithFlags").api, ApiClass::kEventRecord);
  EXPECT_EQ(api_traits("cudaStreamWaitEvent").api, ApiClass::kStreamWait);
  EXPECT_EQ(api_traits("cudaEventQuery").api, ApiClass::kQuery);
}

TEST(ApiClass, WhatItDoesNotKnowIsOther) {
  EXPECT_EQ(api_traits("cudaGetDevice"), ApiTraits{});
  EXPECT_EQ(api_traits("INVALID"), ApiTraits{});
  EXPECT_EQ(api_traits(""), ApiTraits{});
  EXPECT_EQ(api_traits("___"), ApiTraits{});
  EXPECT_EQ(api_traits("cuda"), ApiTraits{});
  EXPECT_EQ(api_traits("hipLaunchKernel"), ApiTraits{});
}

}  // namespace
}  // namespace gpudiag
