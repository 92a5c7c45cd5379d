// SPDX-License-Identifier: Apache-2.0
// Launches and operations as they meet in the engine.
#include "engine_case.hpp"

namespace gpudiag::testing {
namespace {

struct Joining : EngineCase {};

TEST_F(Joining, OperationWithoutLaunchIsValidAndCounted) {
  run_kernel(0_us, 10_us, 100_us);
  add(kernel(stream(7), 100_us, 150_us, corr(77)));
  run_kernel(30_us, 150_us, 200_us);
  add(mark(210_us, 0));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].valid());
  EXPECT_EQ(all[0].compute, microseconds(190));
  EXPECT_EQ(all[0].operations, 3u);
  EXPECT_EQ(quality[Defect::kOrphan], 1u);
}

TEST_F(Joining, QueueFromBeforeTheTraceIsNoDefect) {
  last_id = 100;
  add(kernel(stream(7), 0_us, 50_us, corr(100)));  // ran before the first call that was recorded
  add(kernel(stream(7), 50_us, 100_us, corr(90)));
  run_kernel(10_us, 100_us, 200_us);
  add(mark(210_us, 0));
  EXPECT_EQ(ledgers().at(0).operations, 3u);
  EXPECT_EQ(quality.total(), 0u);
}

TEST_F(Joining, OperationBehindOneWhoseLaunchWasSeenWasNotQueuedBeforeTheTrace) {
  last_id = 100;
  run_kernel(10_us, 100_us, 200_us);
  add(kernel(stream(7), 200_us, 250_us, corr(90)));
  add(mark(300_us, 0));
  ledgers();
  EXPECT_EQ(quality[Defect::kOrphan], 1u);
}

TEST_F(Joining, NothingButOperationsStillMakesALedger) {
  add(kernel(stream(7), 100_us, 150_us, corr(1)));
  add(kernel(stream(7), 350_us, 400_us, corr(2)));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].wall, microseconds(300));
  EXPECT_EQ(all[0].idle, microseconds(200));
}

TEST_F(Joining, LaunchThroughACallNobodyKnowsIsALaunch) {
  add(api(ApiClass::kOther, 0_us, 5_us, corr(1)));
  add(kernel(stream(7), 10_us, 100_us, corr(1)));
  add(mark(20_us, 0));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].launches, 1u);
  EXPECT_EQ(quality.total(), 0u);
}

TEST_F(Joining, DriverCallInsideARuntimeCallIsNotCountedTwice) {
  add(api(ApiClass::kLaunch, 0_us, 10_us, corr(1)));
  add(api(ApiClass::kLaunch, 2_us, 8_us, corr(2)));
  add(kernel(stream(7), 12_us, 100_us, corr(2)));
  add(mark(20_us, 0));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].valid());
  DurationNs host;
  for (const Evidence& evidence : all[0].evidence) host += evidence.host;
  EXPECT_EQ(host, microseconds(10));
}

TEST_F(Joining, DuplicateIsCountedAndItsTimeOnlyOnce) {
  run_kernel(0_us, 10_us, 100_us);
  add(records.back());
  add(mark(20_us, 0));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].operations, 1u);
  EXPECT_EQ(quality[Defect::kDuplicate], 1u);
}

TEST_F(Joining, FailedLaunchIsExpectedToRunNothing) {
  run_kernel(0_us, 10_us, 100_us);
  Record failed = api(ApiClass::kLaunch, 12_us, 15_us, corr(80));
  failed.flags = record_flag::kFailed;
  add(failed);
  add(mark(20_us, 0));
  EXPECT_TRUE(ledgers().at(0).valid());
}

TEST_F(Joining, GraphRecordedAsAWholeIsComputeAndFlagged) {
  add(api(ApiClass::kGraphLaunch, 0_us, 5_us, corr(1)));
  add(operation(RecordKind::kGraph, stream(7), 10_us, 100_us, corr(1)));
  add(mark(20_us, 0));
  const auto all = ledgers();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].compute, microseconds(90));
  EXPECT_EQ(all[0].opaque_graphs, 1u);
}

TEST_F(Joining, NoRecordsMakeNoLedger) {
  EXPECT_TRUE(ledgers().empty());
  add(range(name("aten::mm"), 0_us, 500_us));
  EXPECT_TRUE(ledgers().empty());
}

}  // namespace
}  // namespace gpudiag::testing
