// SPDX-License-Identifier: Apache-2.0
// What a program can ask for while it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "session/outputs.hpp"
#include "session/recent_run.hpp"

namespace gpudiag {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

IterationLedger ledger(std::uint64_t index) {
  IterationLedger made;
  made.index = index;
  made.opened_by = MarkSource::kOptimizer;
  made.wall = made.compute = milliseconds(1);
  made.launches = made.operations = 1;
  return made;
}

TEST(LatestIterations, AreKeptForWhoAsksFromTheFirstQuestionOn) {
  LatestIteration latest;
  latest.set(ledger(0), 3);
  latest.take(nullptr, 0, 0);
  latest.set(ledger(1), 3);
  latest.set(ledger(2), 3);
  gpudiag_iteration taken[4] = {};
  taken[0].size = sizeof taken[0];
  ASSERT_EQ(latest.take(taken, 4, 0), 2u);
  EXPECT_EQ(taken[0].index, 1u);
  EXPECT_EQ(taken[1].index, 2u);
  EXPECT_EQ(taken[1].rank, 3);
  EXPECT_EQ(taken[1].opened_by, GPUDIAG_MARK_OPTIMIZER);
  EXPECT_EQ(latest.take(taken, 4, 0), 0u);
}

TEST(LatestIterations, ACallerOfAnOlderStructGetsItsOwnFieldsSideBySide) {
  struct Older {
    std::size_t size;
    std::uint64_t index;
  };
  LatestIteration latest;
  latest.take(nullptr, 0, 0);
  latest.set(ledger(7), 0);
  latest.set(ledger(8), 0);
  Older taken[2] = {{sizeof(Older), 0}, {}};
  ASSERT_EQ(latest.take(reinterpret_cast<gpudiag_iteration*>(taken), 2, 0), 2u);
  EXPECT_EQ(taken[0].index, 7u);
  EXPECT_EQ(taken[1].index, 8u);
  EXPECT_EQ(taken[1].size, sizeof(Older));
}

TEST(LatestIterations, OfThoseNobodyTakesTheNewestStay) {
  LatestIteration latest;
  latest.take(nullptr, 0, 0);
  for (std::uint64_t i = 0; i < LatestIteration::kQueued + 5; ++i) latest.set(ledger(i), 0);
  gpudiag_iteration first{};
  first.size = sizeof first;
  ASSERT_EQ(latest.take(&first, 1, 0), 1u);
  EXPECT_EQ(first.index, 5u);
}

TEST(LatestIterations, WhoWaitsIsWokenByTheNextAndByTheEnd) {
  LatestIteration latest;
  latest.take(nullptr, 0, 0);
  gpudiag_iteration one{};
  one.size = sizeof one;
  std::size_t taken = 9;
  std::thread waits{[&] { taken = latest.take(&one, 1, 60'000); }};
  latest.set(ledger(4), 0);
  waits.join();
  EXPECT_EQ(taken, 1u);
  std::thread again{[&] { taken = latest.take(&one, 1, 60'000); }};
  latest.take(nullptr, 0, -1);
  again.join();
  EXPECT_EQ(taken, 0u);
}

TEST(RecentRuns, ReportWhatIsKeptAndSayHowMuchIsNot) {
  RecentRun run;
  run.begin({});
  run.add_device({DeviceId{0}, "a device"});
  for (std::uint64_t i = 0; i < 3; ++i) run.add(ledger(i));
  EXPECT_THAT(run.report(), HasSubstr(R"("index":2)"));
  EXPECT_THAT(run.report(), HasSubstr(R"("name":"a device")"));
  EXPECT_THAT(run.report(), Not(HasSubstr("recent_only")));
  IterationLedger wordy = ledger(3);
  wordy.label = std::string(RecentRun::kKeptBytes / 2, 'x');
  run.add(wordy);
  run.add(wordy);
  EXPECT_THAT(run.report(), HasSubstr(R"("text":"the first 4 iterations are left out")"));
}

TEST(RecentRuns, ANewSessionBeginsAnew) {
  RecentRun run;
  run.begin({});
  run.add(ledger(1234));
  run.begin({});
  EXPECT_THAT(run.report(), Not(HasSubstr("1234")));
}

class OutputFiles : public ::testing::Test {
 protected:
  OutputFiles() : folder_{std::filesystem::temp_directory_path() / ("gpudiag_outputs_" + std::to_string(getpid()))} {
    settings_.dir = folder_.string();
    settings_.log = LogMode::kOff;
    settings_.record = true;
  }
  ~OutputFiles() override { std::filesystem::remove_all(folder_); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{folder_}, {}));
  }

  std::filesystem::path folder_;
  Settings settings_;
  LatestIteration latest_;
};

TEST_F(OutputFiles, AProcessThatNeverUsesTheGpuLeavesNone) {
  {
    Outputs outputs{settings_, {}, latest_};
    outputs.record("header");
    outputs.note({{}, "some_note", "text"}, false);
    outputs.quality({}, {});
    outputs.flush();
    outputs.end({});
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(OutputFiles, OneThatDoesHasAllThatWasSaidBefore) {
  Outputs outputs{settings_, {}, latest_};
  ASSERT_TRUE(outputs.recording());
  outputs.record("header");
  outputs.note({{}, "some_note", "text"}, false);
  outputs.flush();
  outputs.device({DeviceId{0}, "a device"});
  outputs.record(" and more");
  outputs.flush();
  ASSERT_EQ(files(), 2u);
  const auto stem = folder_ / "rank0.pid0";
  EXPECT_EQ(std::filesystem::file_size(stem.string() + ".gpudiag"), 15u);
  EXPECT_GT(std::filesystem::file_size(stem.string() + ".jsonl"), 200u);
}

}  // namespace
}  // namespace gpudiag
