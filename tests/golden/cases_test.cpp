// SPDX-License-Identifier: Apache-2.0
// What has gone wrong for users of other tools, from file to ledger: each a trace of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "golden_text.hpp"
#include "trace_file.hpp"

namespace gpudiag::golden {
namespace {

/// Events of one thread of process 100 and of streams of device 0; times in microseconds.
class Events {
 public:
  Events& step(int number, double start, double duration) {
    return add("user_annotation", fmt::format("ProfilerStep#{}", number), 100, 100, start, duration,
               "");
  }
  Events& call(const std::string& name, int correlation, double start, double duration) {
    return add("cuda_runtime", name, 100, 100, start, duration,
               fmt::format(R"("correlation":{})", correlation));
  }
  Events& launch(int correlation, double start, double duration = 5) {
    return call("cudaLaunchKernel", correlation, start, duration);
  }
  Events& kernel(int correlation, double start, double duration, int graph = 0) {
    return add("kernel", "k", 0, 7, start, duration,
               fmt::format(R"("device":0,"context":1,"stream":7,"correlation":{},"graph id":{})",
                           correlation, graph));
  }
  Events& copy(int correlation, double start, double duration) {
    return add("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 0, 7, start, duration,
               fmt::format(R"("device":0,"context":1,"stream":7,"correlation":{},"bytes":64)",
                           correlation));
  }

  ProcessLedgers analysed() const {
    const testing::TraceFile file{"[" + text_ + "]"};
    auto trace = read_kineto(file.path());
    if (!trace) throw std::runtime_error{trace.error().message};
    return std::move(analyse(*trace).front());
  }

 private:
  Events& add(std::string_view category, std::string_view name, int pid, int tid, double start,
              double duration, std::string_view arguments) {
    if (!text_.empty()) text_ += ",\n";
    text_ += fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
        category, name, pid, tid, start, duration, arguments);
    return *this;
  }

  std::string text_;
};

DurationNs charged(const IterationLedger& ledger, Cause cause) {
  return ledger.idle_by_cause[static_cast<std::size_t>(cause)];
}

// T19: 500 kernels, 100 of them with 0/0.
TEST(Case, UntimedKernelsMakeNoGapOfFiftyYears) {
  Events events;
  const double epoch = 1661203462000000;
  for (int step = 0; step < 5; ++step) {
    const double begin = epoch + step * 10'000;
    events.step(step, begin, 9'990);
    for (int i = 0; i < 100; ++i) {
      const int id = step * 100 + i + 1;
      const bool timed = step != 2;
      events.launch(id, begin + 10 + i * 50);
      events.kernel(id, timed ? begin + 20 + i * 50 : 0, timed ? 40 : 0);
    }
  }
  const ProcessLedgers got = events.analysed();
  EXPECT_EQ(got.quality[Defect::kUntimed], 100u);
  EXPECT_EQ(got.quality.grade(), Grade::kPoor);
  ASSERT_EQ(got.ledgers.size(), 5u);
  DurationNs wall;
  for (const IterationLedger& ledger : got.ledgers) wall += ledger.wall;
  EXPECT_EQ(wall, microseconds(40'000 + 4'990 - 20 + 20));
  EXPECT_FALSE(got.ledgers[2].valid());
  EXPECT_TRUE(got.ledgers[1].valid());
  EXPECT_TRUE(got.ledgers[4].valid());
}

// T22: kernels of 300 ns, end to start, at an epoch of 1.7e18 ns.
TEST(Case, NeighboursAtTheNanosecondDoNotOverlap) {
  const std::string text =
      golden_text(std::filesystem::path{GPUDIAG_GOLDEN_FOLDER} / "traces/back_to_back.json");
  EXPECT_NE(text.find("compute 1500 communication 0 copy 0 idle 0\n"), std::string::npos) << text;
}

// T23: kernels that reach over the boundary of a window.
TEST(Case, KernelsOverABoundaryAreNeitherLostNorCountedTwice) {
  const ProcessLedgers got = Events{}
                                 .step(0, 1000, 990)
                                 .launch(1, 1010)
                                 .kernel(1, 1020, 1500)
                                 .step(1, 2000, 990)
                                 .launch(2, 2010)
                                 .kernel(2, 2520, 1500)
                                 .step(2, 3000, 990)
                                 .launch(3, 3010)
                                 .kernel(3, 4020, 1500)
                                 .analysed();
  ASSERT_EQ(got.ledgers.size(), 3u);
  for (const IterationLedger& ledger : got.ledgers) {
    EXPECT_EQ(ledger.compute, microseconds(1500)) << ledger.label;
    EXPECT_EQ(ledger.wall, microseconds(1500)) << ledger.label;
  }
}

// T32: the third step is cut in the middle: its range never ends.
TEST(Case, AStepThatIsCutIsPartialButShown) {
  const ProcessLedgers got = Events{}
                                 .step(0, 1000, 990)
                                 .launch(1, 1010)
                                 .kernel(1, 1020, 500)
                                 .step(1, 2000, 990)
                                 .launch(2, 2010)
                                 .kernel(2, 2020, 500)
                                 .launch(3, 3010)
                                 .kernel(3, 3020, 200)
                                 .analysed();
  ASSERT_EQ(got.ledgers.size(), 3u);
  EXPECT_FALSE(got.ledgers[1].partial);
  EXPECT_TRUE(got.ledgers[2].partial);
  EXPECT_EQ(got.ledgers[2].compute, microseconds(200));
}

// T34: launched by a call that no list of names has.
TEST(Case, ALaunchIsWhatHasTheCorrelationWhateverItsName) {
  Events events;
  for (int i = 0; i < 3; ++i)
    events.call("cbid 9999", i + 1, 1000 + i * 100, 6).kernel(i + 1, 1015 + i * 100, 50);
  const ProcessLedgers got = events.analysed();
  EXPECT_EQ(got.quality[Defect::kOrphan], 0u);
  ASSERT_EQ(got.ledgers.size(), 1u);
  EXPECT_EQ(got.ledgers[0].launches, 3u);
  EXPECT_TRUE(got.ledgers[0].valid());
}

// T35: one graph launch, 24 kernels and 7 copies; then another graph with the first one's id.
TEST(Case, NodesOfAGraphBelongToItsLaunch) {
  Events events;
  for (int run = 0; run < 2; ++run) {
    const double begin = 1000 + run * 1000;
    events.step(run, begin, 990).call("cudaGraphLaunch", run + 1, begin + 10, 8);
    for (int i = 0; i < 24; ++i) events.kernel(run + 1, begin + 20 + i * 10, 10, 5);
    for (int i = 0; i < 7; ++i) events.copy(run + 1, begin + 260 + i * 10, 10);
  }
  const ProcessLedgers got = events.analysed();
  EXPECT_EQ(got.quality.total(), 0u);
  ASSERT_EQ(got.ledgers.size(), 2u);
  for (const IterationLedger& ledger : got.ledgers) {
    EXPECT_EQ(ledger.operations, 31u);
    EXPECT_EQ(ledger.launches, 1u);
    EXPECT_EQ(ledger.compute, microseconds(240));
    EXPECT_EQ(ledger.copy, microseconds(70));
  }
}

// T37: a loop on the device of which only the first round was recorded: 3 kernels in 1 ms of 100.
TEST(Case, IdleInsideAGraphIsNotBlamedOnTheHost) {
  Events events;
  for (int run = 0; run < 2; ++run) {
    const double begin = 1000 + run * 101'000;
    events.step(run, begin, 100'990).call("cudaGraphLaunch", 10 * run + 1, begin + 10, 8);
    for (int i = 0; i < 3; ++i) events.kernel(10 * run + 1, begin + 20 + i * 300, 300, 5);
    events.call("cudaStreamSynchronize", 10 * run + 2, begin + 20, 100'000);
    events.launch(10 * run + 3, begin + 100'030).kernel(10 * run + 3, begin + 100'040, 50);
  }
  const ProcessLedgers got = events.analysed();
  ASSERT_EQ(got.ledgers.size(), 2u);
  // What the host does between the steps is its own: 930 us from kernel to kernel.
  EXPECT_EQ(charged(got.ledgers[0], Cause::kHost), microseconds(0));
  EXPECT_LE(charged(got.ledgers[1], Cause::kHost), microseconds(930));
}

// T38: one launch of 50 us with 1,000 nodes.
TEST(Case, AGraphsLaunchIsChargedOnceNotPerNode) {
  Events events;
  for (int run = 0; run < 2; ++run) {
    const double begin = 1000 + run * 2060;
    events.step(run, begin, 2059).call("cudaGraphLaunch", 10 * run + 1, begin + 1, 50);
    for (int i = 0; i < 1000; ++i) events.kernel(10 * run + 1, begin + 53 + i * 2, 2, 5);
    events.call("cudaStreamSynchronize", 10 * run + 2, begin + 52, 2004);
  }
  const ProcessLedgers got = events.analysed();
  ASSERT_EQ(got.ledgers.size(), 2u);
  EXPECT_EQ(got.ledgers[1].compute, microseconds(2000));
  EXPECT_EQ(got.ledgers[1].idle, microseconds(60));
  EXPECT_LE(charged(got.ledgers[1], Cause::kLaunchOverhead), microseconds(60));
  EXPECT_EQ(charged(got.ledgers[1], Cause::kHost), microseconds(0));
}

// T55: 1,000 launches and not one kernel (WSL): not "idle 100 %".
TEST(Case, WithoutOneOperationThereIsNoLedgerButADefect) {
  Events events;
  events.step(0, 1000, 20'000);
  for (int i = 0; i < 1000; ++i) events.launch(i + 1, 1010 + i * 10);
  const ProcessLedgers got = events.analysed();
  EXPECT_TRUE(got.ledgers.empty());
  EXPECT_EQ(got.quality[Defect::kNoOperation], 1000u);
  EXPECT_EQ(got.quality.grade(), Grade::kPoor);
}

// C section 5: kernels whose launches nobody recorded. Nobody knows then what the host did.
TEST(Case, KernelsWithoutLaunchesAreBlamedOnNothing) {
  Events events;
  for (int step = 0; step < 4; ++step) {
    const double begin = 1000 + step * 2000;
    events.step(step, begin, 1990);
    for (int i = 0; i < 10; ++i) events.kernel(step * 10 + i + 1, begin + 10 + i * 190, 90);
  }
  const ProcessLedgers got = events.analysed();
  ASSERT_FALSE(got.ledgers.empty());
  for (const IterationLedger& ledger : got.ledgers)
    EXPECT_EQ(charged(ledger, Cause::kUnknown), ledger.idle) << ledger.label;
}

// C section 5: kernels of one step stamped by a clock that is an hour ahead.
TEST(Case, AnotherClockMakesNoGapOfAnHour) {
  Events events;
  for (int step = 0; step < 5; ++step) {
    const double begin = 1000 + step * 2000;
    events.step(step, begin, 1990);
    for (int i = 0; i < 10; ++i) {
      const int id = step * 10 + i + 1;
      events.launch(id, begin + 10 + i * 190);
      events.kernel(id, begin + 20 + i * 190 + (step == 2 ? 3600e6 : 0), 90);
    }
  }
  const ProcessLedgers got = events.analysed();
  for (const IterationLedger& ledger : got.ledgers) {
    EXPECT_TRUE(!ledger.valid() || ledger.wall < milliseconds(10)) << ledger.label << ": " << ledger.wall.ns;
  }
  EXPECT_TRUE(got.ledgers.at(1).valid());
  EXPECT_NE(got.quality.grade(), Grade::kGood);
}

// T31: nothing may be taken for granted.
TEST(Case, EmptyTracesGiveEmptyLedgers) {
  EXPECT_TRUE(Events{}.analysed().ledgers.empty());
  EXPECT_TRUE(Events{}.step(0, 1000, 10).analysed().ledgers.empty());
  const ProcessLedgers one = Events{}.kernel(1, 1000, 10).analysed();
  ASSERT_EQ(one.ledgers.size(), 1u);
  EXPECT_EQ(one.ledgers[0].compute, microseconds(10));
}

// T68, T20: one trace with each defect once.
TEST(Case, EachDefectIsCountedByItself) {
  auto trace =
      read_kineto(std::filesystem::path{GPUDIAG_GOLDEN_FOLDER} / "traces/each_defect.json");
  ASSERT_TRUE(trace.ok());
  const Quality quality = analyse(*trace).front().quality;
  for (const Defect defect :
       {Defect::kUntimed, Defect::kNegative, Defect::kForeignClock, Defect::kIncomplete,
        Defect::kOrphan, Defect::kDuplicate, Defect::kBrokenEvent, Defect::kRepairedText}) {
    EXPECT_EQ(quality[defect], 1u) << kDefectNames[static_cast<std::size_t>(defect)];
  }
  EXPECT_EQ(quality.total(), 8u);
  EXPECT_EQ(quality.grade(), Grade::kPoor) << "more than one per cent";
}

// T43: two ranks in one file use the same correlation ids.
TEST(Case, RanksInOneFileDoNotShareTheirLaunches) {
  auto trace =
      read_kineto(std::filesystem::path{GPUDIAG_GOLDEN_FOLDER} / "traces/merged_ranks.json");
  ASSERT_TRUE(trace.ok());
  const std::vector<ProcessLedgers> ranks = analyse(*trace);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].process.pid, 201);
  EXPECT_EQ(ranks[0].ledgers.at(0).launches, 5u);
  EXPECT_EQ(ranks[1].process.pid, 200);
  EXPECT_EQ(ranks[1].ledgers.at(0).launches, 4u);
  EXPECT_EQ(ranks[0].quality.total() + ranks[1].quality.total(), 0u);
}

}  // namespace
}  // namespace gpudiag::golden
