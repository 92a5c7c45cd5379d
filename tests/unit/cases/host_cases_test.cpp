// SPDX-License-Identifier: Apache-2.0
// The host as the bottleneck: launches, collections, allocations, captures, dispatch.
#include "diagnosis_case.hpp"

namespace gpudiag::testing {
namespace {

// rf-detr#1410: 4,200 short kernels, one each 31.7 us.
TEST_F(Diagnosed, ThousandsOfShortKernelsAreLaunchOverhead) {
  for (int step = 0; step < 12; ++step) {
    job.launches(4200, {31'600}, {4'500});
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "launch_overhead");
  EXPECT_EQ(finding(0).sub_cause, SubCause::kManySmallKernels);
  EXPECT_EQ(finding(0).cost_per_iteration, DurationNs{4200 * 26'100});
  EXPECT_THAT(finding(0).evidence,
              Contains("4200 launches an iteration, one each 31.6 us; an operation runs for 4.5 us and the GPU is "
                       "idle for 27.1 us before it, on average"));
  EXPECT_THAT(finding(0).advice, HasSubstr("CUDA graph"));
}

// equinox#1145: 8 ms steps; every eighteenth takes 50.
TEST_F(Diagnosed, CollectionsNowAndThenAreSharedOutOverTheSteps) {
  for (int step = 0; step < 54; ++step) {
    if (step % 18 == 17) job.range("gc generation 2", milliseconds(42));
    job.launches(8, milliseconds(1), microseconds(990));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "host");
  EXPECT_EQ(finding(0).sub_cause, SubCause::kGarbageCollection);
  EXPECT_NEAR(finding(0).share, 3 * 42.0 / 550, 0.01);
  EXPECT_NEAR(finding(0).speedup_if_fixed, 1.3, 0.02);
  EXPECT_EQ(job.summary().median_wall, milliseconds(8));
  EXPECT_THAT(finding(0).evidence, Contains(HasSubstr("gc generation 2 on thread 1: 3 times in 3 of 53 iterations")));
  EXPECT_THAT(finding(0).advice, HasSubstr("gc.freeze()"));
}

// transformers#31530: the allocator's cache is emptied each step.
TEST_F(Diagnosed, MemoryFreedAndAllocatedInEachStepIsCounted) {
  for (int step = 0; step < 20; ++step) {
    for (int block = 0; block < 30; ++block)
      job.device_call(ApiClass::kFree, "cudaFree", microseconds(400));
    for (int block = 0; block < 30; ++block)
      job.device_call(ApiClass::kMalloc, "cudaMalloc", microseconds(300));
    job.launches(60, microseconds(300), milliseconds(1));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "allocation");
  EXPECT_EQ(finding(0).sub_cause, SubCause::kDeviceFree);
  EXPECT_EQ(finding(0).cost_per_iteration, microseconds(30 * 400 + 30 * 300 + 8));
  EXPECT_THAT(finding(0).evidence, Contains(HasSubstr("cudaFree on thread 1: 570 times in 19 of 19 iterations")));
  EXPECT_THAT(finding(0).advice, HasSubstr("empty_cache"));
}

// pytorch#65078: near the memory limit every seventh step empties the cache and tries again.
TEST_F(Diagnosed, AnAllocationThatFailedAndWasTriedAgainIsNamed) {
  for (int step = 0; step < 42; ++step) {
    if (step % 7 == 6) {
      job.device_call(ApiClass::kMalloc, "cudaMalloc", milliseconds(20), record_flag::kFailed);
      for (int block = 0; block < 40; ++block)
        job.device_call(ApiClass::kFree, "cudaFree", milliseconds(13));
      job.device_call(ApiClass::kMalloc, "cudaMalloc", milliseconds(60));
    }
    job.launches(100, microseconds(900), milliseconds(1));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "allocation");
  EXPECT_EQ(finding(0).sub_cause, SubCause::kAllocatorRetry);
  EXPECT_NEAR(finding(0).share, 6 * 600.0 / (41 * 100 + 6 * 600), 0.001);
  EXPECT_THAT(finding(0).evidence,
              Contains(HasSubstr("cudaMalloc that failed on thread 1: 6 times in 6 of 41 iterations")));
  EXPECT_THAT(finding(0).evidence, Contains(HasSubstr("cudaFree on thread 1: 240 times in 6 of 41 iterations")));
}

// pytorch#188150: a graph is captured and instantiated anew in each step.
TEST_F(Diagnosed, AGraphMadeAnewInEachStepIsHostWorkOfCompiling) {
  for (int step = 0; step < 12; ++step) {
    job.call(ApiClass::kCapture, "cudaStreamBeginCapture", microseconds(10));
    job.silence(milliseconds(400));
    job.call(ApiClass::kCapture, "cudaStreamEndCapture", microseconds(10));
    job.call(ApiClass::kInstantiate, "cudaGraphInstantiate", milliseconds(2500));
    job.launch_graph(500, milliseconds(1));
    job.synchronise_stream();
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "graph_recapture");
  EXPECT_EQ(finding(0).sub_cause, SubCause::kCompile);
  EXPECT_NEAR(finding(0).share, 2.9 / 3.4, 0.01);
  EXPECT_FALSE(blames(FindingCause::kDataLoading));
  EXPECT_THAT(finding(0).evidence, Contains(HasSubstr("cudaGraphInstantiate on thread 1: 11 times in 11 of 11 iterations")));
}

// dion#63: 138 ms of dispatch for 40 launches.
TEST_F(Diagnosed, DispatchOfManyOperatorsIsHostAndNotTheCountOfLaunches) {
  for (int step = 0; step < 20; ++step) {
    job.launches(50, microseconds(1900), milliseconds(2));
    job.range("Optimizer.step", [&] {
      for (int launch = 0; launch < 40; ++launch) {
        for (int op = 0; op < 22; ++op)
          job.range("aten::_foreach_mul_", microseconds(156), RangeSource::kOperator);
        job.launch(microseconds(325), "dion_update");
      }
    }, RangeSource::kAnnotation);
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "host");
  EXPECT_NEAR(finding(0).share, 0.514, 0.001);
  EXPECT_FALSE(blames(FindingCause::kLaunchOverhead));
  EXPECT_THAT(finding(0).evidence, Contains(HasSubstr("Optimizer.step on thread 1: 760 times in 19 of 19 iterations")));
}

}  // namespace
}  // namespace gpudiag::testing
