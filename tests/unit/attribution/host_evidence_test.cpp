// SPDX-License-Identifier: Apache-2.0
// What the watcher saw names sub-causes, and nothing else: causes and times stay as they are.
#include <algorithm>

#include "engine_case.hpp"

namespace gpudiag::testing {
namespace {

constexpr std::uint16_t kKnown = record_flag::kProcessorsKnown;
constexpr std::uint16_t kFull = record_flag::kProcessorsKnown | record_flag::kProcessorsFull;

struct HostEvidence : EngineCase {
  /// The gap that tests are about: the GPU is idle from 1 to 41 ms, the host silent all the while.
  HostEvidence() {
    run_kernel(0_us, 10_us, 1'000_us);
    add(mark(20_us, 0));
    run_kernel(41'000_us, 41'008_us, 42'000_us);
    add(mark(41'100_us, 1));
  }
  void loading(const char* text) { add(range(name(text), 30_us, 41'000_us)); }
  void sample(TimePoint start, TimePoint end, HostState state, DurationNs running = {}, DurationNs queued = {},
              std::uint16_t flags = 0, ThreadId on = thread(1), const char* where = "") {
    Record record = span(RecordKind::kHostSample, start, end);
    record.state = state;
    record.thread = on;
    record.value = static_cast<std::uint64_t>(running.ns);
    record.value2 = static_cast<std::uint64_t>(queued.ns);
    record.flags = flags;
    record.name = name(where);
    add(record);
  }
  /// Looks at thread 1 each 5 ms, always the same.
  void looks(HostState state, DurationNs running = {}, DurationNs queued = {}, const char* where = "") {
    for (TimePoint at = 1'000_us; at < 41'000_us; at += milliseconds(5))
      sample(at - milliseconds(5), at, state, running, queued, record_flag::kChildrenKnown, thread(1), where);
  }
  void worker(ThreadId pid, HostState state, DurationNs running = {}, DurationNs queued = {},
              std::uint16_t flags = kKnown) {
    for (TimePoint at = 1'000_us; at < 41'000_us; at += milliseconds(10))
      sample(at - milliseconds(10), at, state, running, queued,
             static_cast<std::uint16_t>(flags | record_flag::kWorker), pid);
  }
  /// What most idle time of the second iteration is charged to.
  Evidence charged_most() {
    const auto all = ledgers();
    EXPECT_EQ(all.size(), 2u);
    const IterationLedger& ledger = all.at(1);
    EXPECT_GE(charged(ledger, Cause::kHost) + charged(ledger, Cause::kDataLoading), microseconds(40'000));
    return ledger.evidence.empty() ? Evidence{} : ledger.evidence.front();
  }
};

TEST_F(HostEvidence, WithoutALookNothingIsNamed) {
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNone);
  EXPECT_EQ(charged_most().what, "host");
}

TEST_F(HostEvidence, AThreadInAFutexWaitsForALock) {
  looks(HostState::kLock, {}, {}, "futex");
  EXPECT_EQ(charged_most().cause, Cause::kHost);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kLock);
  EXPECT_EQ(charged_most().what, "futex");
}

TEST_F(HostEvidence, AThreadInACallOnASocketWaitsForTheNetwork) {
  looks(HostState::kNetwork, {}, {}, "recvfrom");
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNetwork);
}

TEST_F(HostEvidence, CallsOnFilesAndFetchedPagesAreTheDisk) {
  looks(HostState::kDisk);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kDisk);
}

TEST_F(HostEvidence, FetchedPagesAreTheDiskToo) {
  looks(HostState::kFault);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kDisk);
}

TEST_F(HostEvidence, AWriteToStandardOutputIsLogging) {
  looks(HostState::kLog);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kLogging);
}

TEST_F(HostEvidence, AThreadThatRunsIsAtTheProcessor) {
  looks(HostState::kReady, milliseconds(4));
  EXPECT_EQ(charged_most().sub_cause, SubCause::kCpu);
}

TEST_F(HostEvidence, AThreadThatIsReadyWithoutAProcessorIsPreempted) {
  looks(HostState::kReady, milliseconds(1), milliseconds(4), "wait for a free processor");
  EXPECT_EQ(charged_most().sub_cause, SubCause::kPreempted);
  EXPECT_EQ(charged_most().what, "wait for a free processor");
}

TEST_F(HostEvidence, ASleepingThreadIsNoCauseOfTheListButItIsSaidWhereItSleeps) {
  looks(HostState::kAsleep, {}, {}, "clock_nanosleep");
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNone);
  EXPECT_EQ(charged_most().what, "clock_nanosleep");
}

TEST_F(HostEvidence, InsideAnOperatorWorkKeepsTheOperatorsNameAndALockDoesNot) {
  add(range(name("aten::sort"), 30_us, 41'000_us, RangeSource::kOperator));
  looks(HostState::kReady, milliseconds(5));
  EXPECT_EQ(charged_most().sub_cause, SubCause::kDispatch);
  EXPECT_EQ(charged_most().what, "aten::sort");
}

TEST_F(HostEvidence, ALockInsideAnOperatorIsALock) {
  add(range(name("aten::sort"), 30_us, 41'000_us, RangeSource::kOperator));
  looks(HostState::kLock, {}, {}, "futex");
  EXPECT_EQ(charged_most().sub_cause, SubCause::kLock);
  EXPECT_EQ(charged_most().what, "futex in aten::sort");
}

TEST_F(HostEvidence, HalfATimeThatIsKnownNamesNothing) {
  for (TimePoint at = 1'000_us; at < 20'000_us; at += milliseconds(5))
    sample(at - milliseconds(5), at, HostState::kLock);
  for (TimePoint at = 21'000_us; at < 41'000_us; at += milliseconds(5))
    sample(at - milliseconds(5), at, HostState::kAsleep);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNone);
}

TEST_F(HostEvidence, OneLookStandsForNoMoreThanTheTimeBetweenTwo) {
  sample(15'000_us, 20'000_us, HostState::kLock);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNone) << "10 of 40 ms were seen";
}

TEST_F(HostEvidence, AnotherThreadsLocksSayNothing) {
  for (TimePoint at = 1'000_us; at < 41'000_us; at += milliseconds(5))
    sample(at - milliseconds(5), at, HostState::kLock, {}, {}, 0, thread(2));
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNone);
}

TEST_F(HostEvidence, ALookThatSeesNothingOfTheCallNamesNothing) {
  looks(HostState::kUnknown);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNone);
}

TEST_F(HostEvidence, TheLedgerIsTheSameWithAndWithoutLooks) {
  loading("wait_for_batch");
  const auto without = ledgers();
  looks(HostState::kReady, milliseconds(5));
  worker(thread(100), HostState::kReady, milliseconds(10));
  const auto with = ledgers();
  ASSERT_EQ(with.size(), without.size());
  for (std::size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(with[i].idle_by_cause, without[i].idle_by_cause);
    EXPECT_EQ(with[i].replay_cost, without[i].replay_cost);
    EXPECT_EQ(with[i].wall, without[i].wall);
  }
}

TEST_F(HostEvidence, TheOrderInWhichLooksAreDeliveredDoesNotMatter) {
  looks(HostState::kLock, {}, {}, "futex");
  std::reverse(records.begin(), records.end());
  EXPECT_EQ(charged_most().sub_cause, SubCause::kLock);
}

// --- data loading ---------------------------------------------------------------------------------

TEST_F(HostEvidence, WorkersThatAreBusyBesideFreeProcessorsAreTooFew) {
  loading("wait_for_batch");
  looks(HostState::kPipe);
  worker(thread(100), HostState::kReady, milliseconds(10));
  EXPECT_EQ(charged_most().cause, Cause::kDataLoading);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kTooFewWorkers);
}

TEST_F(HostEvidence, WorkersThatComputeOnFullProcessorsAreBoundByThem) {
  loading("wait_for_batch");
  looks(HostState::kPipe);
  for (std::uint32_t pid = 100; pid < 104; ++pid)
    worker(thread(pid), HostState::kReady, milliseconds(5), milliseconds(5), kFull);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kWorkersCpuBound);
}

TEST_F(HostEvidence, WhereNobodyKnowsWhetherProcessorsAreFreeNothingIsSaid) {
  loading("wait_for_batch");
  looks(HostState::kPipe);
  worker(thread(100), HostState::kReady, milliseconds(10), {}, 0);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNone);
}

TEST_F(HostEvidence, WorkersThatReadWaitForStorage) {
  loading("wait_for_batch");
  looks(HostState::kPipe);
  worker(thread(100), HostState::kDisk, milliseconds(2));
  worker(thread(101), HostState::kNetwork, milliseconds(2));
  EXPECT_EQ(charged_most().sub_cause, SubCause::kIoWait);
}

TEST_F(HostEvidence, WorkersWhosePagesAreFetchedFault) {
  loading("wait_for_batch");
  looks(HostState::kPipe);
  worker(thread(100), HostState::kFault, milliseconds(2));
  EXPECT_EQ(charged_most().sub_cause, SubCause::kPageFaults);
}

TEST_F(HostEvidence, AThreadThatWorksOnABatchWhoseWorkersRestUnpicklesIt) {
  loading("wait_for_batch");
  looks(HostState::kReady, milliseconds(5));
  worker(thread(100), HostState::kPipe);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kUnpickling);
}

TEST_F(HostEvidence, SoDoesOneThatHasToWaitForItsProcessorNowAndThen) {
  loading("wait_for_batch");
  looks(HostState::kReady, milliseconds(2), milliseconds(3));
  worker(thread(100), HostState::kPipe);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kUnpickling);
}

TEST_F(HostEvidence, WorkersThatRestWhileTheThreadWaitsExplainNothing) {
  loading("wait_for_batch");
  looks(HostState::kPipe);
  worker(thread(100), HostState::kPipe);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNone);
}

TEST_F(HostEvidence, OneBusyWorkerOfManyIsNoLackOfWorkers) {
  loading("wait_for_batch");
  looks(HostState::kPipe);
  worker(thread(100), HostState::kReady, milliseconds(10));
  for (std::uint32_t pid = 101; pid < 104; ++pid) worker(thread(pid), HostState::kPipe);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kNone);
}

TEST_F(HostEvidence, AWaitForWorkersThatHaveJustBeenMadeIsTheirStart) {
  loading("wait_for_batch");
  looks(HostState::kPipe);
  sample(20'000_us, 20'000_us, HostState::kBorn, {}, {}, record_flag::kWorker, thread(100));
  worker(thread(100), HostState::kReady, milliseconds(10));
  EXPECT_EQ(charged_most().sub_cause, SubCause::kWorkerStart);
}

TEST_F(HostEvidence, AnInlineLoaderThatReadsWaitsForStorage) {
  loading("_SingleProcessDataLoaderIter.__next__");
  looks(HostState::kDisk);
  EXPECT_EQ(charged_most().sub_cause, SubCause::kIoWait);
}

TEST_F(HostEvidence, AnInlineLoaderThatComputesStaysInline) {
  loading("_SingleProcessDataLoaderIter.__next__");
  looks(HostState::kReady, milliseconds(5));
  EXPECT_EQ(charged_most().sub_cause, SubCause::kInline);
}

TEST_F(HostEvidence, ALoadingRangeInWhichTheThreadWorksAndThatHasNoWorkersIsInline) {
  loading("data_loading");
  looks(HostState::kReady, milliseconds(5));
  EXPECT_EQ(charged_most().sub_cause, SubCause::kInline);
}

}  // namespace
}  // namespace gpudiag::testing
