// SPDX-License-Identifier: Apache-2.0
// Sections 3 and 4 of the contract, a rule a case.
#include "engine_case.hpp"

namespace gpudiag::testing {
namespace {

struct Ledger : EngineCase {
  /// The last ledger: the iteration behind the mark, which a test is about.
  IterationLedger last(DeviceId dev = device(0)) {
    const auto all = ledgers(dev);
    return all.empty() ? IterationLedger{} : all.back();
  }
  /// A first iteration that computes until 1 ms.
  void first_iteration() {
    run_kernel(0_us, 10_us, 1000_us);
    add(mark(20_us, 0));
  }
};

TEST_F(Ledger, GapBehindInlineLoaderIsChargedToDataLoading) {
  first_iteration();
  add(range(name("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), 30_us, 3000_us));
  run_kernel(3000_us, 3008_us, 4000_us);
  add(mark(3100_us, 1));
  const auto ledger = last();
  EXPECT_EQ(ledger.idle, microseconds(2008));
  EXPECT_EQ(charged(ledger, Cause::kDataLoading), microseconds(2008));
  EXPECT_EQ(cost(ledger, Cause::kDataLoading), microseconds(2008));
}

TEST_F(Ledger, ReadyBatchThatHidesBehindTheQueueCostsNothing) {
  first_iteration();
  add(range(name("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), 30_us, 600_us));
  run_kernel(600_us, 1000_us, 2000_us);
  add(mark(700_us, 1));
  const auto ledger = last();
  EXPECT_EQ(ledger.idle, DurationNs{});
  EXPECT_EQ(cost(ledger, Cause::kDataLoading), DurationNs{});
}

TEST_F(Ledger, LateBatchTakesTheTimeUntilItArrivedEvenFromASync) {
  first_iteration();
  add(api(ApiClass::kStreamSync, 30_us, 2000_us, corr(50)));
  add(sync(SyncKind::kStream, 30_us, 2000_us, corr(50), stream(7)));
  add(range(name("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), 2000_us, 9000_us));
  run_kernel(9000_us, 9008_us, 9500_us);
  add(mark(9100_us, 1));
  const auto ledger = last();
  EXPECT_EQ(ledger.idle, microseconds(8008));
  EXPECT_EQ(charged(ledger, Cause::kDataLoading), microseconds(8000));
  EXPECT_EQ(charged(ledger, Cause::kSync), DurationNs{});
  EXPECT_EQ(charged(ledger, Cause::kLaunchOverhead), microseconds(8));
  // The batch would have come no sooner without the sync.
  EXPECT_EQ(cost(ledger, Cause::kSync), DurationNs{});
}

TEST_F(Ledger, SyncThatEndsWithTheLastKernelIsChargedOnlyWhatFollows) {
  run_kernel(0_us, 10_us, 45'010_us);
  add(mark(20_us, 0));
  add(api(ApiClass::kStreamSync, 100_us, 45'012_us, corr(50)));
  add(sync(SyncKind::kStream, 100_us, 45'012_us, corr(50), stream(7)));
  run_kernel(45'212_us, 45'220_us, 90'000_us);
  add(mark(45'300_us, 1));
  const auto ledger = last();
  EXPECT_EQ(ledger.idle, microseconds(210));
  EXPECT_EQ(charged(ledger, Cause::kSync), microseconds(210));
  EXPECT_EQ(cost(ledger, Cause::kSync), microseconds(210));
}

TEST_F(Ledger, SyncInHostBoundCodeCostsNothing) {
  for (int i = 0; i < 10; ++i) {
    const TimePoint at = 0_us + microseconds(100 * i);
    run_kernel(at, at + microseconds(7), at + microseconds(12));
    const CorrelationId id = corr(100 + static_cast<std::uint32_t>(i));
    add(api(ApiClass::kStreamSync, at + microseconds(40), at + microseconds(40), id));
    add(sync(SyncKind::kStream, at + microseconds(40), at + microseconds(40), id, stream(7)));
  }
  add(mark(1000_us, 0));
  const auto ledger = last();
  EXPECT_EQ(charged(ledger, Cause::kSync), DurationNs{});
  EXPECT_EQ(cost(ledger, Cause::kSync), DurationNs{});
  EXPECT_EQ(charged(ledger, Cause::kLaunchOverhead), ledger.idle);
}

TEST_F(Ledger, ManySmallKernelsBehindASlowDispatchAreLaunchOverhead) {
  for (int i = 0; i < 10; ++i) {
    const TimePoint at = 0_us + microseconds(31 * i);
    run_kernel(at, at + microseconds(7), at + microseconds(12));
  }
  add(mark(400_us, 0));
  const auto ledger = last();
  EXPECT_EQ(ledger.wall, microseconds(31 * 9 + 5));
  EXPECT_EQ(ledger.compute, microseconds(50));
  EXPECT_EQ(charged(ledger, Cause::kLaunchOverhead), microseconds(26 * 9));
  // Launched at once they would stand in a queue, and between queued kernels lies a microsecond.
  EXPECT_EQ(cost(ledger, Cause::kLaunchOverhead), microseconds(25 * 9));
}

// A thread of the process loads each batch in 16 ms and copies it; the loss read at the end of each
// step drains the device. Without loading the copies come early too, and nothing holds a step back.
TEST_F(Ledger, PrefetchersBatchComesEarlierInTheWorldWithoutLoading) {
  options.range_rules = {"^load_batch$=data_loading"};
  const auto next = name("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
  for (std::uint64_t i = 0; i < 6; ++i) {
    const TimePoint at = 0_ms + milliseconds(static_cast<std::int64_t>(16 * i));
    const auto id = [&](std::uint32_t n) { return corr(static_cast<std::uint32_t>(1000 + 10 * i) + n); };
    add(range(name("load_batch"), at, at + microseconds(15'900), RangeSource::kNvtx, thread(2)));
    add(api(ApiClass::kMemcpyAsync, at + microseconds(15'900), at + microseconds(15'910), id(1), thread(2)));
    add(memcpy_of(CopyKind::kHostToDevice, 4096, stream(9), at + microseconds(15'915),
                  at + microseconds(15'925), id(1)));
    add(api(ApiClass::kEventRecord, at + microseconds(15'911), at + microseconds(15'912), id(2), thread(2)));
    add(event_record(stream(9), event(5), at + microseconds(15'911), id(2)));
    add(range(next, at + microseconds(5'000), at + microseconds(15'930)));
    add(api(ApiClass::kStreamWait, at + microseconds(15'935), at + microseconds(15'936), id(3)));
    add(sync(SyncKind::kStreamWaitsEvent, at + microseconds(15'935), at + microseconds(15'936), id(3),
             stream(7), event(5), id(2)));
    run_kernel(at + microseconds(15'940), at + microseconds(15'950), at + microseconds(20'950));
    add(api(ApiClass::kStreamSync, at + microseconds(15'960), at + microseconds(20'960), id(4)));
    add(sync(SyncKind::kStream, at + microseconds(15'960), at + microseconds(20'960), id(4), stream(7)));
    add(mark(at + microseconds(20'970), i));
  }
  const auto all = ledgers();
  ASSERT_GE(all.size(), 4u);
  EXPECT_GT(cost(all[3], Cause::kDataLoading), milliseconds(10));
  EXPECT_LE(cost(all[3], Cause::kDataLoading), all[3].idle);
}

TEST_F(Ledger, LongSilenceIsHostAndNamedByTheOperatorItWasIn) {
  first_iteration();
  add(range(name("aten::index"), 1100_us, 5000_us, RangeSource::kOperator));
  run_kernel(5000_us, 5008_us, 6000_us);
  add(mark(5100_us, 1));
  const auto ledger = last();
  EXPECT_EQ(charged(ledger, Cause::kHost), microseconds(4008));
  ASSERT_FALSE(ledger.evidence.empty());
  EXPECT_EQ(ledger.evidence[0].what, "aten::index");
  EXPECT_EQ(ledger.evidence[0].sub_cause, SubCause::kDispatch);
}

TEST_F(Ledger, AllocationInTheLoopIsChargedToAllocation) {
  first_iteration();
  add(api(ApiClass::kMalloc, 30_us, 3000_us, corr(50)));
  run_kernel(3010_us, 3018_us, 4000_us);
  add(mark(3100_us, 1));
  const auto ledger = last();
  EXPECT_EQ(charged(ledger, Cause::kAllocation), microseconds(2018));
  EXPECT_EQ(cost(ledger, Cause::kAllocation), microseconds(2018));
}

TEST_F(Ledger, BlockingCopyIsASyncAndItsCopyGoesWithIt) {
  first_iteration();
  Record copy = memcpy_of(CopyKind::kDeviceToHost, 4, stream(7), 1000_us, 1002_us, corr(50));
  copy.flags = record_flag::kPageable;
  add(api(ApiClass::kMemcpyAsync, 30_us, 1010_us, corr(50)));
  add(copy);
  run_kernel(1200_us, 1208_us, 2000_us);
  add(mark(1300_us, 1));
  const auto ledger = last();
  EXPECT_EQ(ledger.copy, microseconds(2));
  EXPECT_EQ(charged(ledger, Cause::kSync), microseconds(206));
  EXPECT_EQ(cost(ledger, Cause::kSync), microseconds(208));
}

// A profiler attaches inside the first call: 43 ms in which the device had nothing to be waited for,
// so that without syncs the host would be no further ahead of it.
TEST_F(Ledger, CopyOnAnIdleStreamCostsNoLeadBeforeItStarts) {
  add(api(ApiClass::kMemcpyAsync, 0_us, 43'100_us, corr(900)));
  Record copy = memcpy_of(CopyKind::kHostToDevice, 4096, stream(7), 43'000_us, 43'090_us, corr(900));
  copy.flags = record_flag::kPageable;
  add(copy);
  for (int i = 0; i < 10; ++i) {
    const TimePoint launch = 43'200_us + microseconds(200 * i);
    run_kernel(launch, launch + microseconds(10), launch + microseconds(60));
  }
  add(mark(46'000_us, 0));
  const auto ledger = last();
  EXPECT_EQ(ledger.start, 43'000_us);
  EXPECT_EQ(charged(ledger, Cause::kSync), microseconds(100));
  EXPECT_EQ(cost(ledger, Cause::kSync), microseconds(100));
  EXPECT_EQ(charged(ledger, Cause::kLaunchOverhead), ledger.idle - microseconds(100));
}

TEST_F(Ledger, EverythingInsideACheckpointIsCheckpoint) {
  first_iteration();
  add(range(name("torch.save"), 30_us, 8000_us));
  add(api(ApiClass::kStreamSync, 40_us, 1010_us, corr(50)));
  add(sync(SyncKind::kStream, 40_us, 1010_us, corr(50), stream(7)));
  add(api(ApiClass::kMalloc, 2000_us, 3000_us, corr(51)));
  run_kernel(8000_us, 8008_us, 9000_us);
  add(mark(8100_us, 1));
  const auto ledger = last();
  EXPECT_EQ(charged(ledger, Cause::kCheckpoint), microseconds(7008));
  EXPECT_EQ(charged(ledger, Cause::kAllocation), DurationNs{});
}

TEST_F(Ledger, GarbageCollectionInsideALoaderIsItself) {
  first_iteration();
  add(range(name("_SingleProcessDataLoaderIter.__next__"), 1000_us, 3000_us));
  Record collection = range(name("gc"), 1500_us, 2500_us, RangeSource::kHook);
  collection.cause = static_cast<std::uint8_t>(Cause::kHost) + 1;
  collection.sub_cause = static_cast<std::uint8_t>(SubCause::kGarbageCollection) + 1;
  add(collection);
  run_kernel(3000_us, 3000_us, 4000_us);
  add(mark(3100_us, 1));
  const auto ledger = last();
  EXPECT_EQ(charged(ledger, Cause::kHost), microseconds(1000));
  EXPECT_EQ(charged(ledger, Cause::kDataLoading), microseconds(1000));
}

TEST_F(Ledger, WaitForACollectiveOnTheHostIsCommunicationWait) {
  first_iteration();
  add(range(name("c10d::barrier"), 30_us, 5000_us));
  run_kernel(5000_us, 5008_us, 6000_us);
  add(mark(5100_us, 1));
  EXPECT_EQ(charged(last(), Cause::kCommunicationWait), microseconds(4008));
}

TEST_F(Ledger, WhatNoHostCauseExplainsIsDependency) {
  run_kernel(0_us, 10_us, 100_us);
  run_kernel(10_us, 400_us, 500_us);
  add(mark(20_us, 0));
  const auto ledger = last();
  EXPECT_EQ(charged(ledger, Cause::kDependency), microseconds(300));
  EXPECT_EQ(cost(ledger, Cause::kHost), DurationNs{});
}

TEST_F(Ledger, OwnTimeIsNotTheJobsLaunchOverhead) {
  for (int i = 0; i < 10; ++i) {
    const TimePoint at = 0_us + microseconds(20 * i);
    const CorrelationId id = corr(++last_id);
    add(api(ApiClass::kLaunch, at, at + microseconds(13), id));
    Record own = span(RecordKind::kOwn, at + microseconds(2), at + microseconds(10));
    own.thread = thread(1);
    add(own);
    add(kernel(stream(7), at + microseconds(15), at + microseconds(20), id));
  }
  add(mark(300_us, 0));
  const auto ledger = last();
  EXPECT_EQ(ledger.own, microseconds(80));
  EXPECT_EQ(charged(ledger, Cause::kHost), microseconds(72));
  EXPECT_EQ(charged(ledger, Cause::kLaunchOverhead), ledger.idle - microseconds(72));
}

TEST_F(Ledger, GraphLaunchIsOverheadOnceHoweverManyNodesItHas) {
  const CorrelationId id = corr(++last_id);
  add(api(ApiClass::kGraphLaunch, 0_us, 50_us, id));
  for (int i = 0; i < 1000; ++i)
    add(kernel(stream(7), 60_us + microseconds(2 * i), 61_us + microseconds(2 * i), id));
  add(mark(100_us, 0));
  const auto ledger = last();
  EXPECT_EQ(ledger.launches, 1u);
  EXPECT_EQ(ledger.operations, 1000u);
  DurationNs host;
  std::uint64_t count = 0;
  for (const Evidence& evidence : ledger.evidence)
    if (evidence.sub_cause == SubCause::kGraphLaunch) {
      host += evidence.host;
      count += evidence.count;
    }
  EXPECT_EQ(host, microseconds(50));
  EXPECT_EQ(count, 1u);
}

TEST_F(Ledger, FullLaunchQueueIsADependencyAndNoOverhead) {
  options.launch_queue_depth = 2;
  run_kernel(0_us, 10_us, 1000_us);
  run_kernel(10_us, 1000_us, 2000_us);
  run_kernel(20_us, 2000_us, 3000_us);
  const CorrelationId id = corr(++last_id);
  // Two are queued: this launch returns when the second has begun.
  add(api(ApiClass::kLaunch, 30_us, 1003_us, id));
  add(kernel(stream(7), 3000_us, 4000_us, id));
  add(mark(1010_us, 0));
  const auto ledger = last();
  EXPECT_EQ(ledger.idle, DurationNs{});
  EXPECT_EQ(cost(ledger, Cause::kLaunchOverhead), DurationNs{});
  DurationNs queued;
  for (const Evidence& evidence : ledger.evidence)
    if (evidence.sub_cause == SubCause::kLaunchQueueFull) queued += evidence.host;
  EXPECT_EQ(queued, microseconds(970));
}

TEST_F(Ledger, ExposedCommunicationBehindALateHostMayCostNothing) {
  first_iteration();
  const CorrelationId id = corr(++last_id);
  Record collective = kernel(stream(9), 1000_us, 2000_us, id);
  collective.name = name("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  add(api(ApiClass::kLaunch, 40_us, 45_us, id));
  add(collective);
  add(range(name("torch.save"), 50_us, 3000_us));
  run_kernel(3000_us, 3008_us, 4000_us);
  add(mark(3100_us, 1));
  const auto ledger = last();
  EXPECT_EQ(ledger.communication, microseconds(1000));
  EXPECT_EQ(ledger.replay_cost_communication, DurationNs{});
  EXPECT_EQ(charged(ledger, Cause::kCheckpoint), microseconds(1008));
}

TEST_F(Ledger, EventThatAStreamWaitsForCarriesTheDelayOver) {
  first_iteration();
  add(range(name("torch.save"), 30_us, 3000_us));
  run_kernel(3000_us, 3008_us, 3500_us, thread(1), stream(9));
  add(api(ApiClass::kEventRecord, 3010_us, 3011_us, corr(60)));
  add(event_record(stream(9), event(5), 3010_us, corr(60)));
  add(api(ApiClass::kStreamWait, 3012_us, 3013_us, corr(61)));
  add(sync(SyncKind::kStreamWaitsEvent, 3012_us, 3013_us, corr(61), stream(7), event(5)));
  run_kernel(3020_us, 3500_us, 4000_us);
  add(mark(3100_us, 1));
  // Without the checkpoint the side stream is done at 530 us and nothing waits for it.
  EXPECT_EQ(cost(last(), Cause::kCheckpoint), microseconds(2500));
}

}  // namespace
}  // namespace gpudiag::testing
