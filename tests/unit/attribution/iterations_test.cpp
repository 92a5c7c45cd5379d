// SPDX-License-Identifier: Apache-2.0
// Sections 1 and 2 of the contract: windows, loops, chains, what is valid.
#include "engine_case.hpp"

namespace gpudiag::testing {
namespace {

struct Iterations : EngineCase {};

TEST_F(Iterations, WindowEndsWithWhatTheIterationLaunchedLast) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, 7));
  run_kernel(150_us, 160_us, 300_us);
  add(mark(170_us, 8));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].start, 10_us);
  EXPECT_EQ(all[0].wall, microseconds(90));
  EXPECT_EQ(all[0].index, 7u);
  EXPECT_TRUE(all[0].partial);
  EXPECT_EQ(all[1].start, 100_us);
  EXPECT_EQ(all[1].wall, microseconds(200));
  EXPECT_EQ(all[1].index, 8u);
  EXPECT_FALSE(all[1].partial);
  EXPECT_EQ(all[1].host_step, microseconds(150));
}

TEST_F(Iterations, OrderOfLaunchDecidesNotOfExecution) {
  run_kernel(0_us, 10_us, 500_us, thread(1), stream(9));
  run_kernel(10_us, 20_us, 100_us);
  add(mark(20_us, 0));
  run_kernel(30_us, 100_us, 600_us);
  add(mark(40_us, 1));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].wall, microseconds(90));
  EXPECT_EQ(all[1].start, 100_us);
  EXPECT_EQ(all[1].compute, microseconds(500));
}

TEST_F(Iterations, WithoutOperationsIsEmptyAndHasNoWall) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, 0));
  add(mark(30_us, 1));
  run_kernel(150_us, 160_us, 300_us);
  add(mark(170_us, 2));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[1].empty);
  EXPECT_EQ(all[1].wall, DurationNs{});
  EXPECT_EQ(all[2].start, 100_us);
}

TEST_F(Iterations, WhatFollowsTheLastMarkIsPartial) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, 0));
  run_kernel(30_us, 100_us, 200_us);
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[1].partial);
}

TEST_F(Iterations, ProfilerStepsOpenWithTheFirstAndEndWithEach) {
  add(range(name("ProfilerStep#16"), 0_us, 50_us));
  run_kernel(5_us, 12_us, 100_us);
  add(range(name("ProfilerStep#17"), 60_us, 120_us));
  run_kernel(70_us, 110_us, 200_us);
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].label, "ProfilerStep#16");
  EXPECT_EQ(all[0].index, 16u);
  EXPECT_FALSE(all[0].partial);
  EXPECT_EQ(all[0].opened_by, MarkSource::kProfilerStep);
  EXPECT_EQ(all[1].host_step, microseconds(70));
}

TEST_F(Iterations, ExplicitStepsAreObeyedAndOtherMarksOnlyCounted) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(15_us, 90, MarkSource::kOptimizer));
  add(mark(20_us, 0, MarkSource::kStep));
  run_kernel(30_us, 100_us, 200_us);
  add(mark(35_us, 91, MarkSource::kOptimizer));
  add(mark(40_us, 1, MarkSource::kStep));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].opened_by, MarkSource::kStep);
  EXPECT_EQ(all[1].index, 1u);
}

TEST_F(Iterations, EvaluationIsAPhaseOfItsOwnAndTakesNoNumber) {
  const auto evaluation = [](TimePoint at) {
    Record record = mark(at, kNoIndex, MarkSource::kOptimizer);
    record.flags = record_flag::kEvaluation;
    return record;
  };
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, kNoIndex, MarkSource::kOptimizer));
  run_kernel(30_us, 100_us, 200_us);
  add(evaluation(40_us));
  run_kernel(50_us, 200_us, 300_us);
  add(evaluation(60_us));
  run_kernel(70_us, 300_us, 400_us);
  add(mark(80_us, kNoIndex, MarkSource::kOptimizer));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].phase, Phase::kTrain);
  EXPECT_EQ(all[1].phase, Phase::kEvaluation);
  EXPECT_EQ(all[2].phase, Phase::kEvaluation);
  EXPECT_EQ(all[3].phase, Phase::kTrain);
  EXPECT_EQ(all[0].index, 0u);
  EXPECT_EQ(all[1].index, 1u);
  EXPECT_EQ(all[2].index, 1u);
  EXPECT_EQ(all[3].index, 1u);
  EXPECT_EQ(all[3].opened_by, MarkSource::kOptimizer);
}

TEST_F(Iterations, JobWithoutMarksHasWindowsOfASecond) {
  for (int i = 0; i < 25; ++i) {
    const TimePoint at = 0_ms + milliseconds(100 * i);
    run_kernel(at, at + microseconds(10), at + milliseconds(90));
  }
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].opened_by, MarkSource::kWindow);
  EXPECT_EQ(all[0].phase, Phase::kWindow);
  EXPECT_EQ(all[0].operations, 10u);
  EXPECT_EQ(all[1].operations, 10u);
  EXPECT_TRUE(all[2].partial);
}

// A batch is copied, three kernels run, one of them an optimizer's; 10 ms from one to the next.
struct UnmarkedLoop : EngineCase {
  void iterate(TimePoint from) {
    const CorrelationId copy = corr(++last_id);
    add(api(ApiClass::kMemcpyAsync, from, from + microseconds(5), copy));
    add(memcpy_of(CopyKind::kHostToDevice, 4096, stream(7), from + microseconds(10), from + microseconds(20), copy));
    TimePoint at = from + microseconds(6);
    for (const char* kernel_name : {"forward", "backward", "sgd_update"}) {
      const CorrelationId id = corr(++last_id);
      add(api(ApiClass::kLaunch, at, at + microseconds(5), id));
      Record record = kernel(stream(7), at + microseconds(1000), at + microseconds(1005), id);
      record.name = name(kernel_name);
      add(record);
      at = at + microseconds(6);
    }
  }
  void loop(int iterations) {
    for (int i = 0; i < iterations; ++i) iterate(0_ms + milliseconds(10 * i));
  }
};

TEST_F(UnmarkedLoop, IsFoundInTheLaunchesFromTheFirstIterationOn) {
  loop(8);
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 8u);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(all[i].opened_by, MarkSource::kLaunchPattern);
    EXPECT_EQ(all[i].phase, Phase::kTrain);
    EXPECT_EQ(all[i].index, i);
    EXPECT_EQ(all[i].launches, 4u);
  }
  EXPECT_EQ(all[3].host_step, milliseconds(10));
  EXPECT_TRUE(all[7].partial);
}

TEST_F(UnmarkedLoop, IsCutIntoWindowsWhereTheSearchIsTurnedOff) {
  options.launch_pattern = false;
  loop(8);
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].opened_by, MarkSource::kWindow);
}

TEST_F(UnmarkedLoop, IsUndecidedWithThreeIterations) {
  loop(3);
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].phase, Phase::kWindow);
}

TEST_F(UnmarkedLoop, ObeysAMarkWhereThereIsOne) {
  loop(8);
  add(mark(35_ms, 12));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].opened_by, MarkSource::kStep);
  EXPECT_EQ(all[0].index, 12u);
}

TEST_F(Iterations, WindowsHaveNumbersOfTheirOwnAndEmptyOnesAreNone) {
  run_kernel(0_ms, 1_ms, 2_ms);
  run_kernel(500_ms, 501_ms, 502_ms);
  add(tick(12000_ms));
  run_kernel(13000_ms, 13001_ms, 13002_ms);
  add(tick(15500_ms));
  add(mark(15600_ms, kNoIndex));
  run_kernel(15700_ms, 15701_ms, 15702_ms);
  add(mark(15800_ms, kNoIndex));
  add(tick(17000_ms));
  const auto all = ledgers();
  std::vector<std::uint64_t> windows, trained;
  for (const IterationLedger& ledger : all) {
    EXPECT_FALSE(ledger.empty);
    (ledger.phase == Phase::kWindow ? windows : trained).push_back(ledger.index);
  }
  EXPECT_EQ(windows, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(trained.front(), 0u);
}

TEST_F(Iterations, TwoDevicesOfOneRankHaveALedgerEach) {
  run_kernel(0_us, 10_us, 100_us);
  run_kernel(6_us, 20_us, 300_us, thread(1), stream(7), device(1));
  add(mark(20_us, 0));
  const auto first = ledgers(device(0)), second = ledgers(device(1));
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(first[0].wall, microseconds(90));
  EXPECT_EQ(second[0].wall, microseconds(280));
}

TEST_F(Iterations, CopiesOfAThreadNobodyWaitsForStayBeside) {
  run_kernel(0_us, 10_us, 100_us);
  add(api(ApiClass::kMemcpyAsync, 50_us, 55_us, corr(90), thread(2)));
  add(memcpy_of(CopyKind::kDeviceToHost, 1 << 20, stream(30), 110_us, 190_us, corr(90)));
  run_kernel(190_us, 200_us, 300_us);
  add(mark(210_us, 0));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].copy, DurationNs{});
  EXPECT_EQ(all[0].idle, microseconds(100));
}

TEST_F(Iterations, CopiesOfALoaderThreadThatIsWaitedForAreTheChains) {
  run_kernel(0_us, 10_us, 100_us);
  add(api(ApiClass::kMemcpyAsync, 50_us, 55_us, corr(90), thread(2)));
  add(memcpy_of(CopyKind::kHostToDevice, 1 << 20, stream(30), 110_us, 190_us, corr(90)));
  add(api(ApiClass::kEventRecord, 56_us, 57_us, corr(91), thread(2)));
  add(event_record(stream(30), event(3), 56_us, corr(91)));
  add(api(ApiClass::kStreamWait, 60_us, 61_us, corr(92)));
  add(sync(SyncKind::kStreamWaitsEvent, 60_us, 61_us, corr(92), stream(7), event(3)));
  run_kernel(70_us, 190_us, 300_us);
  add(mark(210_us, 0));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].copy, microseconds(80));
}

TEST_F(Iterations, DefectiveOperationInvalidatesItsIterationAlone) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, 0));
  const CorrelationId id = corr(++last_id);
  add(api(ApiClass::kLaunch, 30_us, 35_us, id));
  Record untimed = kernel(stream(7), 0_us, 0_us, id);
  untimed.flags = record_flag::kUntimed;
  add(untimed);
  run_kernel(40_us, 150_us, 200_us);
  add(mark(50_us, 1));
  run_kernel(60_us, 200_us, 300_us);
  add(mark(70_us, 2));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].valid());
  EXPECT_EQ(invalid(all[1], InvalidReason::kUntimed), 1u);
  EXPECT_EQ(invalid(all[1], InvalidReason::kLaunchesWithoutOperations), 0u);
  EXPECT_TRUE(all[2].valid());
  EXPECT_EQ(quality[Defect::kUntimed], 1u);
}

TEST_F(Iterations, OperationThatEndsBeforeItStartsIsLeftOutAndCounted) {
  run_kernel(0_us, 10_us, 100_us);
  run_kernel(6_us, 200_us, 150_us);
  run_kernel(12_us, 300_us, 400_us);
  add(mark(20_us, 0));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(invalid(all[0], InvalidReason::kNegative), 1u);
  EXPECT_EQ(all[0].compute, microseconds(190));
  EXPECT_EQ(quality[Defect::kNegative], 1u);
}

TEST_F(Iterations, LaunchWithoutOperationMakesItsIterationInvalid) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, 0));
  add(api(ApiClass::kLaunch, 30_us, 35_us, corr(70)));
  run_kernel(40_us, 150_us, 200_us);
  add(mark(50_us, 1));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].valid());
  EXPECT_EQ(invalid(all[1], InvalidReason::kLaunchesWithoutOperations), 1u);
}

TEST_F(Iterations, LostRecordsAndTimeStoodAsideAreNeverGuessed) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, 0));
  Record lost = span(RecordKind::kLost, 30_us, 30_us);
  lost.value = 12;
  add(lost);
  run_kernel(40_us, 150_us, 200_us);
  add(mark(50_us, 1));
  add(span(RecordKind::kGap, 60_us, 80_us));
  run_kernel(90_us, 250_us, 300_us);
  add(mark(100_us, 2));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].valid());
  EXPECT_EQ(invalid(all[1], InvalidReason::kDropped), 12u);
  EXPECT_EQ(invalid(all[2], InvalidReason::kStoodAside), 1u);
  EXPECT_EQ(quality[Defect::kDropped], 12u);
}

// Since the last delivery two iterations have ended: the loss may lie in any of the three.
TEST_F(Iterations, ALossThatLiesInSeveralIsCountedBeforeInAllButTheFirst) {
  add(tick(5_us));
  run_kernel(6_us, 10_us, 100_us);
  add(mark(20_us, 0));
  run_kernel(30_us, 110_us, 150_us);
  add(mark(40_us, 1));
  Record lost = span(RecordKind::kLost, 50_us, 50_us);
  lost.value = 12;
  add(lost);
  run_kernel(60_us, 160_us, 200_us);
  add(mark(70_us, 2));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 3u);
  constexpr auto kDropped = static_cast<std::size_t>(InvalidReason::kDropped);
  for (const IterationLedger& ledger : all) {
    EXPECT_EQ(ledger.invalid[kDropped], 12u);
    EXPECT_EQ(ledger.counted_before[kDropped], ledger.index == 0 ? 0u : 12u);
  }
}

TEST_F(Iterations, ATimeStoodAsideThatIsToldPieceByPieceIsOne) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, 0));
  add(span(RecordKind::kGap, 60_us, 80_us));
  add(span(RecordKind::kGap, 80_us, 90_us));
  add(span(RecordKind::kGap, 90_us, 95_us));
  run_kernel(97_us, 250_us, 300_us);
  add(mark(100_us, 1));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(invalid(all[1], InvalidReason::kStoodAside), 1u);
}

// Nobody knows when the last operation of the time stood aside ended, so the window of the first one
// after it begins nowhere, though its host's iteration lies behind.
TEST_F(Iterations, TheFirstOperationAfterATimeStoodAsideEndsNoValidWindow) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, 0));
  add(span(RecordKind::kGap, 110_us, 300_us));
  add(mark(200_us, 1));
  add(mark(310_us, 2));
  run_kernel(320_us, 330_us, 400_us);
  add(mark(340_us, 3));
  run_kernel(350_us, 410_us, 500_us);
  add(mark(360_us, 4));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_TRUE(all[0].valid());
  EXPECT_EQ(invalid(all[1], InvalidReason::kStoodAside), 1u);
  EXPECT_EQ(invalid(all[2], InvalidReason::kStoodAside), 1u);
  EXPECT_EQ(invalid(all[3], InvalidReason::kStoodAside), 1u);
  EXPECT_TRUE(all[4].valid());
  EXPECT_EQ(all[4].wall, microseconds(100));
}

}  // namespace
}  // namespace gpudiag::testing
