// SPDX-License-Identifier: Apache-2.0
#include "report/reporter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledgers.hpp"
#include "report/ledger_json.hpp"

namespace gpudiag {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using test::evidence;
using test::ledger;

RankCollector rank_with(std::vector<IterationLedger> ledgers, std::uint32_t rank = 0) {
  SessionInfo info;
  info.origin_unix_ns = 1'000'000 + rank;
  info.rank = rank;
  info.source = "trace.json";
  RankCollector collector{info};
  for (const IterationLedger& one : ledgers) collector.add(one);
  collector.close();
  return collector;
}

std::vector<IterationLedger> alike(std::uint64_t count, const IterationLedger& like) {
  std::vector<IterationLedger> made(count, like);
  for (std::uint64_t i = 0; i < count; ++i) made[i].index = i;
  return made;
}

constexpr std::size_t column_of_host() { return static_cast<std::size_t>(Cause::kHost); }

std::string printed(const std::function<std::unique_ptr<Reporter>(Write)>& make,
                    const std::vector<const RankCollector*>& ranks) {
  std::string text;
  const auto reporter = make([&](std::string_view piece) { text += piece; });
  reporter->begin();
  std::vector<RankBasis> bases;
  for (const RankCollector* rank : ranks) {
    reporter->rank(*rank);
    bases.push_back(rank->basis());
  }
  reporter->end(diagnose(bases));
  return text;
}

std::string as_text(const RankCollector& rank) {
  return printed([](Write write) { return make_text_reporter(std::move(write), {100, false}); }, {&rank});
}

TEST(RankCollector, SteadySumsLeaveOutWarmUpPartialAndInvalidIterations) {
  std::vector<IterationLedger> ledgers = alike(8, ledger(0, 100));
  ledgers[0].partial = true;
  ledgers[1].compute = ledgers[1].wall = DurationNs{900};
  ledgers[5].invalid[0] = 2;
  const RankCollector rank = rank_with(ledgers);
  const DeviceSummary& device = rank.devices().at(DeviceId{0});
  EXPECT_EQ(device.all.iterations, 7u);
  EXPECT_EQ(device.all.wall, DurationNs{1500});
  EXPECT_EQ(device.steady.iterations, 5u);
  EXPECT_EQ(device.steady.wall, DurationNs{500});
  EXPECT_EQ(device.warm_up, 1u);
  EXPECT_EQ(device.invalid, 1u);
  EXPECT_TRUE(rank.basis().steady);
  EXPECT_EQ(rank.basis().invalid_reasons[0], 2u);
}

TEST(RankCollector, TheScatterIsThatOfTheIterationsTheSumIsOf) {
  std::vector<IterationLedger> ledgers = alike(12, ledger(0, 700'000, {{Cause::kHost, 300'000}}));
  ledgers[0] = ledger(0, 5'000'000, {{Cause::kHost, 5'000'000}});  // warm-up
  const RankCollector steady = rank_with(ledgers);
  ASSERT_EQ(steady.basis().scatter.size(), 1u);
  EXPECT_DOUBLE_EQ(steady.basis().scatter[0].margin(column_of_host(), 0.3), 0);
  for (IterationLedger& one : ledgers) one.phase = Phase::kWindow;
  const RankCollector windows = rank_with(ledgers);
  EXPECT_FALSE(windows.basis().steady);
  EXPECT_GT(windows.basis().scatter.at(0).margin(column_of_host(), 0.3), 0);
}

TEST(RankCollector, JudgesAJobThatOnlyEvaluatesByItsEvaluationAndNotByItsStart) {
  std::vector<IterationLedger> ledgers = alike(6, ledger(0, 700'000, {{Cause::kSync, 300'000}}));
  for (IterationLedger& one : ledgers) one.phase = Phase::kEvaluation;
  ledgers[0] = ledger(0, 9'000'000, {{Cause::kHost, 8'000'000}});
  ledgers[0].phase = Phase::kWindow;
  const RankCollector rank = rank_with(ledgers);
  EXPECT_FALSE(rank.basis().steady);
  EXPECT_EQ(rank.basis().sum.iterations, 5u);
  EXPECT_EQ(rank.basis().sum.idle_of(Cause::kHost), DurationNs{});
  EXPECT_EQ(rank.devices().at(DeviceId{0}).all.iterations, 6u);
}

TEST(RankCollector, JudgesFewIterationsByThemAndNotByTheWindowsBefore) {
  std::vector<IterationLedger> ledgers = alike(3, ledger(0, 700'000));
  ledgers[0].phase = ledgers[1].phase = Phase::kWindow;
  const RankCollector rank = rank_with(ledgers);
  EXPECT_EQ(rank.basis().sum.iterations, 1u);
}

TEST(RankCollector, KnowsAJobOfPyTorchByItsEvidence) {
  IterationLedger like = ledger(0, 100);
  EXPECT_FALSE(rank_with(alike(3, like)).basis().torch);
  like.evidence.push_back(evidence(Cause::kSync, SubCause::kItem, "cudaStreamSynchronize in aten::item", 30));
  EXPECT_TRUE(rank_with(alike(3, like)).basis().torch);
}

TEST(RankCollector, TheDevicesOfARankAddUpAndItsIterationsDoNot) {
  std::vector<IterationLedger> ledgers = alike(4, ledger(0, 100));
  for (IterationLedger other : alike(4, ledger(0, 50))) {
    other.device = DeviceId{1};
    ledgers.push_back(other);
  }
  const RankCollector rank = rank_with(ledgers);
  EXPECT_EQ(rank.basis().sum.wall, DurationNs{600});
  EXPECT_EQ(rank.basis().iterations, 4u);
}

TEST(LedgerSpool, GivesEveryFieldBackFromMemoryAndFromItsFile) {
  IterationLedger full = ledger(7, 100, {{Cause::kSync, 30}});
  full.process = ProcessId{4};
  full.device = DeviceId{2};
  full.label = std::string("a\0b", 3);
  full.phase = Phase::kEvaluation;
  full.partial = true;
  full.invalid[3] = 5;
  full.start = TimePoint{-9};
  full.transfer = DurationNs{11};
  full.own = DurationNs{3};
  full.opaque_graphs = 8;
  full.evidence.push_back(evidence(Cause::kSync, SubCause::kItem, "aten::item", 30));
  for (std::size_t limit : {std::size_t{1} << 20, std::size_t{200}}) {
    LedgerSpool spool{limit};
    for (std::uint64_t i = 0; i < 100; ++i) {
      full.index = i;
      spool.add(full);
    }
    for (int pass = 0; pass < 2; ++pass) {
      std::uint64_t next = 0;
      spool.for_each([&](const IterationLedger& back) {
        full.index = next++;
        EXPECT_EQ(iteration_json(back, 0), iteration_json(full, 0));
        EXPECT_EQ(back.process, full.process);
      });
      EXPECT_EQ(next, 100u);
    }
  }
}

TEST(TextReport, SaysSharesFindingsAndVerdict) {
  IterationLedger like = ledger(0, 75'000'000, {{Cause::kSync, 25'000'000}});
  like.evidence.push_back(evidence(Cause::kSync, SubCause::kItem, "aten::item", 25'000'000));
  const std::string text = as_text(rank_with(alike(20, like)));
  EXPECT_THAT(text, HasSubstr("    compute                               75.0 %      75.0 ms  ██████████████████████████████\n"));
  EXPECT_THAT(text, HasSubstr("      sync (item)                         25.0 %      25.0 ms  ██████████\n"));
  EXPECT_THAT(text, HasSubstr("  1. sync (item): 25.0 % of wall, 25.0 ms an iteration; 1.33 times as fast without it"));
  EXPECT_THAT(text, HasSubstr("verdict: sync: it costs 25.0 % of wall time"));
}

TEST(TextReport, WrapsLongTextsBetweenWords) {
  IterationLedger like = ledger(0, 75'000'000, {{Cause::kSync, 25'000'000}});
  std::string text = as_text(rank_with(alike(20, like)));
  while (!text.empty()) {
    const std::string line = text.substr(0, text.find('\n'));
    if (line.rfind("     > ", 0) == 0 || line.rfind("       ", 0) == 0) {
      EXPECT_LE(line.size(), 100u) << line;
    }
    text.erase(0, line.size() + 1);
  }
}

TEST(TextReport, NoLineOfAFindingIsLongerThanTheTerminal) {
  IterationLedger like = ledger(0, 75'000'000, {{Cause::kLaunchOverhead, 25'000'000}});
  like.evidence.push_back(evidence(Cause::kLaunchOverhead, SubCause::kManySmallKernels, "cudaLaunchKernel", 25'000'000));
  std::vector<IterationLedger> iterations = alike(20, like);
  for (std::size_t i = 0; i < iterations.size(); i += 2) iterations[i].replay_cost[2] = DurationNs{20'000'000};
  RankCollector rank = rank_with(iterations);
  Quality quality;
  quality.records = 1'000'000;
  for (auto& count : quality.defects) count = 12;
  rank.set_quality(quality);
  const std::string text = printed(
      [](Write write) { return make_text_reporter(std::move(write), {60, false}); }, {&rank});
  EXPECT_THAT(text, HasSubstr("launch_overhead (many_small_kernels): up to"));
  for (std::size_t at = 0; at < text.size();) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (line.find(" %  ") != std::string::npos) continue;  // the table has a width of its own
    EXPECT_LE(line.size(), 60u) << line;
  }
}

TEST(TextReport, DoesNotCallNoRecordsGood) {
  RankCollector rank = rank_with({});
  EXPECT_THAT(as_text(rank), Not(HasSubstr("good")));
  EXPECT_THAT(as_text(rank), HasSubstr("no record was written"));
  rank.set_finished(false);
  EXPECT_THAT(as_text(rank), HasSubstr("quality not known"));
  EXPECT_THAT(as_text(rank), HasSubstr("before its first iteration had been written"));
}

TEST(TextReport, SaysThatAKilledJobDidNotFinish) {
  RankCollector rank = rank_with(alike(3, ledger(0, 100)));
  EXPECT_THAT(as_text(rank), Not(HasSubstr("without closing")));
  rank.set_finished(false);
  EXPECT_THAT(as_text(rank), HasSubstr("ended without closing its session"));
}

TEST(JsonReport, TimesOfAllRanksHaveOneOrigin) {
  const RankCollector first = rank_with(alike(1, ledger(0, 100)), 0);
  const RankCollector second = rank_with(alike(1, ledger(0, 100)), 7);
  const std::string text = printed([](Write write) { return make_json_reporter(std::move(write)); }, {&first, &second});
  EXPECT_THAT(text, HasSubstr(R"("origin_unix_ns":"1000000")"));
  EXPECT_THAT(text, HasSubstr(R"("clock_shift_ns":0,)"));
  EXPECT_THAT(text, HasSubstr(R"("clock_shift_ns":7,)"));
  EXPECT_THAT(text, HasSubstr(R"("start_ns":7,)"));
}

TEST(JsonLinesReport, ReadsLikeALiveRun) {
  const RankCollector rank = rank_with(alike(2, ledger(0, 100)));
  const std::string text = printed([](Write write) { return make_json_lines_reporter(std::move(write)); }, {&rank});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_THAT(text, HasSubstr(iteration_json(alike(2, ledger(0, 100))[1], 0) + "\n"));
  EXPECT_THAT(text, HasSubstr(R"("event":"end","rank":0,"at_ns":100,"iterations":2)"));
}

}  // namespace
}  // namespace gpudiag
