// SPDX-License-Identifier: Apache-2.0
// A GPU that is busy: with communication, or with what it is there for.
#include "diagnosis_case.hpp"

namespace gpudiag::testing {
namespace {

// ninfer-3090#72: a power cap that costs nothing; kernels take what they always take.
TEST_F(Diagnosed, ABusyGpuWhoseKernelsTakeWhatTheyAlwaysTakeIsNoFinding) {
  for (int step = 0; step < 30; ++step) {
    job.launches(50, microseconds(100), milliseconds(1));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "none");
  EXPECT_THAT(diagnosis().findings, IsEmpty());
}

// AReaL#639: 370 ms for one reduction over a network, nothing beside it.
TEST_F(Diagnosed, ASlowCollectiveIsCommunicationAndNoIdleTime) {
  for (int step = 0; step < 20; ++step) {
    job.launches(50, microseconds(100), milliseconds(2));
    job.launch(milliseconds(370), "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)");
    job.launches(5, microseconds(100), milliseconds(2));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "communication");
  EXPECT_EQ(diagnosis().findings.size(), 1u);
  EXPECT_NEAR(finding(0).share, 370.0 / 480, 0.001);
}

// imagenet-multiGPU#59: copies between the devices of one process at 1.4 GB/s.
TEST_F(Diagnosed, SlowCopiesBetweenDevicesAreCommunication) {
  for (int step = 0; step < 20; ++step) {
    job.launches(50, microseconds(100), milliseconds(8));
    if (step == 9) job.synchronise_stream();
    for (int peer = 0; peer < 3; ++peer)
      job.async_copy(CopyKind::kPeer, 100'000'000, milliseconds(71));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "communication");
  EXPECT_EQ(diagnosis().findings.size(), 1u);
  EXPECT_NEAR(finding(0).share, 213.0 / 613, 0.001);
}

}  // namespace
}  // namespace gpudiag::testing
