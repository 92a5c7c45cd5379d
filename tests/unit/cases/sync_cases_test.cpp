// SPDX-License-Identifier: Apache-2.0
// Waits of the host for the GPU: which of them cost something, and how much.
#include "diagnosis_case.hpp"

namespace gpudiag::testing {
namespace {

// torchtune#522: the host waits for 45 ms, the GPU only for the 0.3 ms that follow.
TEST_F(Diagnosed, AWaitDuringWhichTheGpuWorksCostsOnlyWhatFollowsIt) {
  for (int step = 0; step < 20; ++step) {
    job.silence(microseconds(292));
    job.launches(40, microseconds(8'870), milliseconds(10));
    job.range("aten::item", [&] { job.synchronise_stream(); }, RangeSource::kOperator);
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "none");
  EXPECT_THAT(diagnosis().findings, IsEmpty());
  const LedgerSum& steady = job.summary().steady;
  EXPECT_EQ(steady.cost_of(Cause::kSync), microseconds(302 * 19));
  // The 45 ms stand in the evidence, and cost nothing.
  const auto& evidence = job.ledgers()[5].evidence;
  const auto wait = std::find_if(evidence.begin(), evidence.end(), [](const Evidence& seen) {
    return seen.cause == Cause::kSync;
  });
  ASSERT_NE(wait, evidence.end());
  EXPECT_EQ(wait->sub_cause, SubCause::kItem);
  EXPECT_EQ(wait->host, DurationNs{45'210'000});
  EXPECT_EQ(wait->charged, microseconds(10));
}

// FastVideo#1217: a blocking copy before and a value read after each of four micro-batches.
TEST_F(Diagnosed, SyncsAndBlockingCopiesOfMicroBatchesAreTwoFindings) {
  for (int step = 0; step < 12; ++step) {
    for (int micro = 0; micro < 4; ++micro) {
      job.blocking_copy(CopyKind::kHostToDevice, 48'000'000, milliseconds(6));
      job.launches(40, microseconds(100), milliseconds(1));
      job.async_copy(CopyKind::kDeviceToHost, 4, microseconds(2));
      job.synchronise_stream();
      job.silence(milliseconds(25));
    }
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "sync");
  EXPECT_EQ(finding(0).sub_cause, SubCause::kItem) << "four bytes read back and waited for";
  EXPECT_THAT(finding(0).advice, HasSubstr("Reading a value of the GPU on the host"));
  EXPECT_EQ(finding(0).cost_per_iteration, microseconds(4 * 25'023));
  EXPECT_THAT(finding(0).evidence, Contains(HasSubstr("cudaStreamSynchronize on thread 1: 44 times in 11 of 11 iterations")));
  // Why sync, if the ledger has the time under host: either alone would end it.
  EXPECT_THAT(finding(0).evidence, Contains(HasSubstr("that idle time stands under host, 35.2 % of wall")));
  ASSERT_TRUE(blames(FindingCause::kCopy));
  const Finding& copy = diagnosis().findings.back();
  EXPECT_EQ(copy.cause, FindingCause::kCopy);
  EXPECT_EQ(copy.cost_per_iteration, microseconds(4 * 6'002));
  EXPECT_THAT(copy.evidence, Contains(HasSubstr("44 copy calls blocked the caller (pageable memory")));
  EXPECT_THAT(copy.advice, HasSubstr("pinned"));
}

// OneTrainer#1608: 2 KB to the GPU in mid-forward; the call lasts until the queue is empty.
TEST_F(Diagnosed, ATinyCopyThatDrainsTheQueueIsASyncAndNotBandwidth) {
  for (int step = 0; step < 20; ++step) {
    job.launches(20, microseconds(50), milliseconds(1));
    job.blocking_copy(CopyKind::kHostToDevice, 2048, microseconds(2));
    job.silence(microseconds(1500));
    job.launches(20, microseconds(50), milliseconds(1));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "sync");
  EXPECT_EQ(finding(0).sub_cause, SubCause::kBlockingCopy);
  EXPECT_EQ(finding(0).cost_per_iteration, microseconds(1510));
  EXPECT_FALSE(blames(FindingCause::kCopy));
  EXPECT_THAT(finding(0).evidence, Contains(HasSubstr("copy of pageable memory to the GPU (cudaMemcpyAsync) on thread 1: 19 times in "
                                 "19 of 19 iterations, 38.912 kB, ")));
  EXPECT_THAT(finding(0).advice, HasSubstr("pageable"));
}

// PyTorch's `.to("cuda")` without pinned memory: the call returns once the copy is queued, and a wait
// for the stream stands right behind it. It is the copy that should go, not that wait.
TEST_F(Diagnosed, AWaitRightBehindAPageableCopyIsTheCopys) {
  for (int step = 0; step < 20; ++step) {
    job.launches(20, microseconds(50), milliseconds(1));
    job.range("aten::copy_", [&] {
      job.async_copy(CopyKind::kHostToDevice, 38'535'168, milliseconds(6), record_flag::kPageable);
      job.call(ApiClass::kOther, "cudaStreamIsCapturing", microseconds(1));
      job.synchronise_stream();
    });
    job.silence(microseconds(1500));
    job.end_of_step();
  }
  job.analyse();
  ASSERT_EQ(diagnosis().verdict, "copy");
  const auto& all = diagnosis().findings;
  const auto sync = std::find_if(all.begin(), all.end(), [](const Finding& f) { return f.cause == FindingCause::kSync; });
  ASSERT_NE(sync, all.end());
  EXPECT_EQ(sync->sub_cause, SubCause::kBlockingCopy);
  EXPECT_THAT(sync->evidence, Contains(HasSubstr("copy of pageable memory to the GPU (cudaMemcpyAsync) in aten::copy_ on "
                                                 "thread 1: 19 times in 19 of 19 iterations, 732.168 MB, ")));
  EXPECT_THAT(sync->evidence, Not(Contains(HasSubstr("cudaStreamSynchronize"))));
  EXPECT_THAT(sync->advice, HasSubstr("pinned"));
}

// The trace resnet50_v100_workers4: the images take the lead in 9 ms, and the labels are copied right
// behind them in microseconds. What the GPU waits for later is the images' doing.
TEST_F(Diagnosed, WhatABigCopyCostsIsNotChargedToTheSmallOneBehindIt) {
  for (int step = 0; step < 20; ++step) {
    job.launches(20, microseconds(50), milliseconds(1));
    job.range("images to the GPU", [&] { job.blocking_copy(CopyKind::kHostToDevice, 19'267'584, milliseconds(3)); });
    job.async_copy(CopyKind::kHostToDevice, 256, microseconds(1), record_flag::kPageable);
    job.synchronise_stream();
    job.silence(microseconds(1500));
    job.end_of_step();
  }
  job.analyse();
  const auto& all = diagnosis().findings;
  const auto sync = std::find_if(all.begin(), all.end(), [](const Finding& f) { return f.cause == FindingCause::kSync; });
  ASSERT_NE(sync, all.end());
  EXPECT_THAT(sync->evidence.at(2), HasSubstr("in images to the GPU on thread 1: 19 times in 19 of 19 iterations, 366.084 MB, "));
}

// A launch in between: whoever waits then waits for more than the copy.
TEST_F(Diagnosed, AWaitBehindALaunchIsNotTheCopysBeforeIt) {
  for (int step = 0; step < 20; ++step) {
    job.async_copy(CopyKind::kHostToDevice, 38'535'168, microseconds(10), record_flag::kPageable);
    job.launches(20, microseconds(50), milliseconds(1));
    job.synchronise_stream();
    job.silence(microseconds(1500));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(finding(0).cause, FindingCause::kSync);
  EXPECT_EQ(finding(0).sub_cause, SubCause::kStreamSync);
}

// deepmd-kit#3361: a mask makes an index, which needs its length on the host.
TEST_F(Diagnosed, AMaskThatReadsItsLengthIsASyncThatNamesItsOperator) {
  for (int step = 0; step < 20; ++step) {
    job.launches(30, microseconds(30), milliseconds(1));
    job.range("aten::nonzero", [&] {
      job.launches(2, microseconds(20), microseconds(4), "DeviceSelectSweepKernel");
      job.async_copy(CopyKind::kDeviceToHost, 8, microseconds(2));
      job.synchronise_stream();
      job.silence(milliseconds(3));
    }, RangeSource::kOperator);
    job.launches(30, microseconds(30), milliseconds(1));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "sync");
  EXPECT_EQ(finding(0).cost_per_iteration, microseconds(3012));
  EXPECT_THAT(finding(0).evidence,
              Contains(HasSubstr("cudaStreamSynchronize in aten::nonzero on thread 1: 19 times in 19 of 19 iterations")));
}

// Advanced_Optimizers#5: one read of the GPU for each parameter.
TEST_F(Diagnosed, AStormOfSyncsIsCountedAndPlacedInItsRange) {
  for (int step = 0; step < 12; ++step) {
    job.launches(40, microseconds(100), milliseconds(1));
    job.range("Optimizer.step", [&] {
      for (int parameter = 0; parameter < 1500; ++parameter) {
        job.launch(microseconds(2), "lamb_norm");
        job.async_copy(CopyKind::kDeviceToHost, 4, microseconds(1));
        job.synchronise_stream();
        job.silence(microseconds(40));
      }
    });
    job.end_of_step();
  }
  job.analyse();
  // 83 us a parameter: 51 of launches and of dispatch, which would stay without the syncs.
  EXPECT_EQ(diagnosis().verdict, "launch_overhead");
  const Finding& sync = finding(1);
  EXPECT_EQ(sync.cause, FindingCause::kSync);
  EXPECT_EQ(sync.sub_cause, SubCause::kItem);
  EXPECT_EQ(sync.cost_per_iteration, DurationNs{35'100'000});
  EXPECT_THAT(sync.evidence,
              Contains(HasSubstr("cudaStreamSynchronize in Optimizer.step on thread 1: 16500 times in 11 of 11 "
                                 "iterations, 494.956 ms of host time, 369.600 ms of idle charged")));
}

// A loop that is tuned with a timeline viewer: blocking copy before each step, a value after it.
TEST_F(Diagnosed, TheUntunedLoopHasTwoFindingsInOrderOfCost) {
  for (int step = 0; step < 20; ++step) {
    job.silence(milliseconds(4));
    job.blocking_copy(CopyKind::kHostToDevice, 80'000'000, milliseconds(10));
    job.launches(60, microseconds(100), milliseconds(1));
    job.async_copy(CopyKind::kDeviceToHost, 4, microseconds(2));
    job.synchronise_stream();
    job.silence(milliseconds(8));
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "sync");
  EXPECT_EQ(finding(0).cost_per_iteration, microseconds(12'023));
  const Finding& copy = diagnosis().findings.back();
  EXPECT_EQ(copy.cause, FindingCause::kCopy);
  EXPECT_EQ(copy.cost_per_iteration, microseconds(10'002));
}

TEST_F(Diagnosed, TheTunedLoopHasNoFinding) {
  for (int step = 0; step < 20; ++step) {
    job.launches(60, microseconds(100), milliseconds(1));
    job.silence(milliseconds(12));
    if (step % 20 == 19) job.synchronise_stream();
    job.end_of_step();
  }
  job.analyse();
  EXPECT_EQ(diagnosis().verdict, "none");
  EXPECT_THAT(diagnosis().findings, IsEmpty());
}

}  // namespace
}  // namespace gpudiag::testing
