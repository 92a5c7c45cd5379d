// SPDX-License-Identifier: Apache-2.0
// Batches that come late, and waits that only look like it.
#include "diagnosis_case.hpp"

namespace gpudiag::testing {
namespace {

// geti#5958: 217 ms until the next batch, 100 ms of kernels; the host issues them in 93 ms.
TEST_F(Diagnosed, ALoaderThatMakesTheGpuWaitIsTwoThirdsOfTheStep) {
  for (int step = 0; step < 50; ++step) {
    job.range("next(loader)", milliseconds(217));
    job.launches(100, microseconds(930), milliseconds(1));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "data_loading");
  EXPECT_EQ(finding(0).cost_per_iteration, milliseconds(210));
  EXPECT_NEAR(finding(0).share, 0.68, 0.005);
  EXPECT_NEAR(finding(0).speedup_if_fixed, 3.1, 0.001);
  EXPECT_EQ(finding(0).confidence, Confidence::kHigh);
  EXPECT_THAT(finding(0).evidence, Contains(HasSubstr("next(loader) on thread 1: 49 times in 49 of 49 iterations")));
  EXPECT_THAT(finding(0).advice, HasSubstr("num_workers"));
}

TEST_F(Diagnosed, ABatchThatIsThereInTimeIsNoFinding) {
  for (int step = 0; step < 50; ++step) {
    job.range("next(loader)", milliseconds(4));
    job.launches(100, microseconds(930), milliseconds(1));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "none");
  EXPECT_THAT(diagnosis().findings, IsEmpty());
}

// HRNet#152: after training, forwards whose results the host works on for 8 s each.
TEST_F(Diagnosed, HostWorkOnResultsOfAnEvaluationIsNoDataLoading) {
  for (int step = 0; step < 20; ++step) {
    job.launches(20, milliseconds(9), milliseconds(10));
    job.end_of_step();
  }
  for (int forward = 0; forward < 4; ++forward) {
    job.launches(10, milliseconds(4), milliseconds(5));
    job.blocking_copy(CopyKind::kDeviceToHost, 64'000'000, milliseconds(12));
    job.silence(seconds(8));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "host");
  EXPECT_FALSE(blames(FindingCause::kDataLoading));
  EXPECT_EQ(charged(Cause::kDataLoading), DurationNs{});
  // Three of the forwards are followed by another one.
  EXPECT_EQ(charged(Cause::kHost), seconds(24));
}

// Time-Series-Library#324: an evaluation of very many tiny forwards.
TEST_F(Diagnosed, TinyForwardsAreLaunchBoundAndNoDataLoading) {
  for (int forward = 0; forward < 200; ++forward) {
    job.launches(10, microseconds(40), microseconds(3));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "launch_overhead");
  EXPECT_EQ(finding(0).sub_cause, SubCause::kManySmallKernels);
  // 40 us apart, 3 us long, and a microsecond between queued kernels stays whatever the host does.
  EXPECT_NEAR(finding(0).share, 0.9, 1e-6);
  EXPECT_EQ(diagnosis().findings.size(), 1u);
}

// electra_pytorch#21: four steps of 300 ms, then 900 ms without a loader's range.
TEST_F(Diagnosed, AGapAtTheEndOfAnEpochIsNoDataLoading) {
  for (int epoch = 0; epoch < 6; ++epoch) {
    for (int step = 0; step < 4; ++step) {
      job.range("next(loader)", milliseconds(1));
      job.launches(30, microseconds(9'500), milliseconds(10));
      job.end_of_step();
    }
    job.silence(milliseconds(1200));
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "host");
  EXPECT_FALSE(blames(FindingCause::kDataLoading));
  // Five ends of epochs in 23 iterations, less the lead that the host had.
  EXPECT_NEAR(finding(0).share, 0.4532, 0.0001);
  EXPECT_LT(charged(Cause::kDataLoading), milliseconds(6));
}

}  // namespace
}  // namespace gpudiag::testing
