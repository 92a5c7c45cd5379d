// SPDX-License-Identifier: Apache-2.0
// The model must obey CUDA's rules before it may judge anybody.
#include <gtest/gtest.h>

#include "job.hpp"
#include "machine.hpp"
#include "measure.hpp"

namespace gpudiag::truth {
namespace {

Action launch(std::uint32_t stream, std::int64_t length_us) {
  return {.what = Do::kLaunch,
          .host = microseconds(5),
          .device_time = microseconds(length_us),
          .latency = microseconds(3),
          .stream = stream};
}
Action on_event(Do what, std::uint32_t event, std::uint32_t stream = 0) {
  return {.what = what, .host = microseconds(1), .stream = stream, .event = event};
}

Program program_of(std::vector<Action> actions) {
  Program program;
  program.streams = {Stream{}, Stream{}};
  program.events = 2;
  program.scripts.push_back({"main", std::move(actions)});
  return program;
}

TEST(Machine, KernelStartsWhenItsLaunchHasReturnedAndTheLatencyHasPassed) {
  const Program program = program_of({launch(0, 20)});
  const History run = execute(program);
  EXPECT_EQ(run.calls[0].end, TimePoint{5'000});
  EXPECT_EQ(run.operations[0].start, TimePoint{8'000});
  EXPECT_EQ(run.operations[0].end, TimePoint{28'000});
}

TEST(Machine, KernelsOfOneStreamRunOneAfterTheOther) {
  const Program program = program_of({launch(0, 20), launch(0, 20)});
  const History run = execute(program);
  EXPECT_EQ(run.operations[1].start, TimePoint{28'800});
}

TEST(Machine, KernelsOfTwoStreamsOverlap) {
  const Program program = program_of({launch(0, 20), launch(1, 20)});
  const History run = execute(program);
  EXPECT_EQ(run.operations[1].start, TimePoint{13'000});
}

TEST(Machine, StreamWaitsForTheEventsLatestRecordAtTheTimeOfTheCall) {
  const Program program =
      program_of({launch(0, 20), on_event(Do::kRecord, 0, 0), on_event(Do::kStreamWait, 0, 1),
                  launch(0, 90), on_event(Do::kRecord, 0, 0), launch(1, 20)});
  const History run = execute(program);
  EXPECT_EQ(run.operations[2].start, TimePoint{29'200});  // 28 us, and the event's latency
  EXPECT_EQ(run.calls[2].event_call, 2u);
}

TEST(Machine, WaitForAnEventNeverRecordedDoesNotWait) {
  const Program program =
      program_of({launch(0, 90), on_event(Do::kStreamWait, 1, 1), on_event(Do::kEventSync, 1)});
  const History run = execute(program);
  EXPECT_EQ(run.calls[2].end, TimePoint{7'000});
  EXPECT_EQ(run.calls[2].event_call, 0u);
}

TEST(Machine, StreamSyncReturnsAfterTheStreamIsDone) {
  const Program program =
      program_of({launch(0, 20), {.what = Do::kStreamSync, .host = microseconds(2)}});
  const History run = execute(program);
  EXPECT_EQ(run.calls[1].end, TimePoint{32'000});
}

TEST(Machine, MallocWaitsForAllStreamsOfTheDeviceBeforeItsOwnTime) {
  const Program program =
      program_of({launch(0, 20), launch(1, 50), {.what = Do::kMalloc, .host = microseconds(100)}});
  const History run = execute(program);
  EXPECT_EQ(run.operations[1].end, TimePoint{63'000});
  EXPECT_EQ(run.calls[2].end, TimePoint{167'000});
}

TEST(Machine, FullLaunchQueueBlocksTheLauncher) {
  Program program = program_of({launch(0, 100), launch(0, 100), launch(0, 100)});
  program.queue_depth = 2;
  const History run = execute(program);
  EXPECT_EQ(run.calls[2].end, TimePoint{113'000});  // the first ends at 108
}

TEST(Machine, CopiesOfOneDirectionShareAnEngineInTheOrderInWhichTheyCanStart) {
  auto copy = [](std::uint32_t stream) {
    return Action{.what = Do::kCopy,
                  .host = microseconds(1),
                  .device_time = microseconds(30),
                  .count = 1,
                  .stream = stream,
                  .copy = CopyKind::kHostToDevice};
  };
  // The copy on stream 0 is asked for first but comes behind a kernel.
  const Program program = program_of({launch(0, 100), copy(0), copy(1)});
  const History run = execute(program);
  EXPECT_EQ(run.operations[1].start, TimePoint{108'800});
  EXPECT_EQ(run.operations[2].start, TimePoint{7'000});
}

TEST(Machine, ThreadsHandOverThroughSemaphores) {
  Program program = program_of({{.what = Do::kTake}, launch(0, 10)});
  program.scripts.push_back(
      {"other", {{.what = Do::kWork, .host = microseconds(50)}, {.what = Do::kPut}}});
  program.semaphores = {0};
  const History run = execute(program);
  EXPECT_EQ(run.calls[0].start, TimePoint{59'000});
}

TEST(Machine, ScriptsThatWaitForEachOtherForEverAreAnError) {
  Program program = program_of({{.what = Do::kTake}});
  program.semaphores = {0};
  EXPECT_THROW(execute(program), std::logic_error);
}

TEST(Machine, LeavingATroubleOutChangesNoOtherLength) {
  const Troubles logger{Trouble::kLoggerAnonymous};
  const Program with = write_job({}, logger, logger);
  const Program without = write_job({}, logger, {});
  const History slow = execute(with);
  const History fast = execute(without);
  ASSERT_EQ(slow.operations.size(), fast.operations.size());
  for (std::size_t i = 0; i < slow.operations.size(); ++i)
    ASSERT_EQ(slow.operations[i].end - slow.operations[i].start,
              fast.operations[i].end - fast.operations[i].start);
}

TEST(Measure, WindowsPartitionTheDevicesTime) {
  const Program program = write_job({}, {}, {});
  const std::vector<Window> windows = measure(program, execute(program), 0, Cut::kLaunchedLast);
  ASSERT_EQ(windows.size(), JobShape{}.iterations);
  for (std::size_t i = 1; i < windows.size(); ++i) EXPECT_EQ(windows[i].start, windows[i - 1].end);
}

TEST(Measure, IdleIsWhatNeitherKernelsNorCopiesCover) {
  Program program = program_of({launch(0, 20),
                                {.what = Do::kWork, .host = microseconds(95)},
                                launch(0, 20),
                                {.what = Do::kMark}});
  const std::vector<Window> windows = measure(program, execute(program), 0, Cut::kLaunchedLast);
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].wall(), microseconds(120));  // kernels at 8 to 28 and 108 to 128
  EXPECT_EQ(windows[0].compute, microseconds(40));
  EXPECT_EQ(windows[0].idle, microseconds(80));
}

TEST(Measure, IterationEndsWithTheOperationItLaunchedLastHoweverLateThatRuns) {
  Program program = program_of({launch(0, 10),
                                launch(1, 500),
                                {.what = Do::kMark},
                                {.what = Do::kWork, .host = microseconds(1)},
                                launch(0, 10),
                                {.what = Do::kMark}});
  const std::vector<Window> windows = measure(program, execute(program), 0, Cut::kLaunchedLast);
  EXPECT_EQ(windows[0].end, TimePoint{513'000});
  EXPECT_EQ(windows[1].wall(), DurationNs{});
}

TEST(Measure, IterationIsAllDoneWhenNothingItLaunchedStillRuns) {
  Program program = program_of({launch(1, 500), launch(0, 10), {.what = Do::kMark}});
  const std::vector<Window> windows = measure(program, execute(program), 0, Cut::kAllDone);
  EXPECT_EQ(windows[0].end, TimePoint{508'000});
}

}  // namespace
}  // namespace gpudiag::truth
