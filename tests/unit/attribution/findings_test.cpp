// SPDX-License-Identifier: Apache-2.0
#include "attribution/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "attribution/advice.hpp"
#include "unit/report/ledgers.hpp"

namespace gpudiag {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using test::evidence;
using test::ledger;

// A rank with these iterations, all of them steady.
RankBasis rank_of(const std::vector<IterationLedger>& iterations, std::uint32_t rank = 0) {
  RankBasis basis;
  basis.rank = rank;
  basis.steady = true;
  basis.quality.records = 10'000;
  CostScatter scatter{iterations.size()};
  for (IterationLedger one : iterations) {
    one.index = basis.iterations++;
    basis.sum.add(one);
    basis.evidence.add(one);
    scatter.add(one);
    basis.launches += one.launches;
    basis.operations += one.operations;
  }
  basis.scatter = {scatter};
  return basis;
}

// Twenty like iterations of a rank, steady.
RankBasis rank_of(const IterationLedger& like, std::uint32_t rank = 0) {
  return rank_of(std::vector<IterationLedger>(20, like), rank);
}

Diagnosis diagnose_one(const RankBasis& rank) { return diagnose({&rank, 1}); }

constexpr std::size_t at(Cause cause) { return static_cast<std::size_t>(cause); }

TEST(Findings, ACauseIsRankedByWhatTheReplaySavesNotByItsCharge) {
  IterationLedger like = ledger(0, 60'000'000, {{Cause::kDataLoading, 30'000'000}, {Cause::kSync, 10'000'000}});
  like.replay_cost[at(Cause::kDataLoading)] = milliseconds(5);
  like.replay_cost[at(Cause::kSync)] = milliseconds(25);
  const Diagnosis diagnosis = diagnose_one(rank_of(like));
  ASSERT_THAT(diagnosis.findings, SizeIs(2));
  EXPECT_EQ(diagnosis.findings[0].cause, FindingCause::kSync);
  EXPECT_DOUBLE_EQ(diagnosis.findings[0].share, 0.25);
  EXPECT_EQ(diagnosis.findings[0].cost_per_iteration, milliseconds(25));
  EXPECT_NEAR(diagnosis.findings[0].speedup_if_fixed, 1.3333, 1e-4);
  EXPECT_EQ(diagnosis.findings[1].cause, FindingCause::kDataLoading);
  EXPECT_EQ(diagnosis.verdict, "sync");
}

TEST(Findings, LessThanTwoPercentIsNone) {
  const Diagnosis below = diagnose_one(rank_of(ledger(0, 981'000, {{Cause::kSync, 19'000}})));
  EXPECT_THAT(below.findings, IsEmpty());
  EXPECT_EQ(below.verdict, "none");
  EXPECT_EQ(diagnose_one(rank_of(ledger(0, 980'000, {{Cause::kSync, 20'000}}))).verdict, "sync");
}

TEST(Findings, ExposedCommunicationThatCostsNothingIsNoFinding) {
  IterationLedger like = ledger(0, 79'000'000);
  like.communication = milliseconds(20);
  like.wall += milliseconds(20);
  like.replay_cost_communication = microseconds(250);
  EXPECT_EQ(diagnose_one(rank_of(like)).verdict, "none");
}

TEST(Findings, CommunicationAndCopiesThatCostAreFindingsOfTheirOwn) {
  IterationLedger like = ledger(0, 60'000'000);
  like.communication = milliseconds(30);
  like.communication_total = milliseconds(40);
  like.copy = milliseconds(10);
  like.copy_total = milliseconds(10);
  like.wall += milliseconds(40);
  like.replay_cost_communication = milliseconds(30);
  like.replay_cost_copy = milliseconds(10);
  const Diagnosis diagnosis = diagnose_one(rank_of(like));
  ASSERT_THAT(diagnosis.findings, SizeIs(2));
  EXPECT_EQ(diagnosis.verdict, "communication");
  EXPECT_THAT(diagnosis.findings[0].evidence[0], HasSubstr("30.0 % of wall is exposed communication; 25.0 %"));
  EXPECT_EQ(name_of(diagnosis.findings[1].cause), "copy");
}

TEST(Findings, CiteWhatWasSeenWhereAndGiveAdviceForTheSubCause) {
  IterationLedger like = ledger(0, 70'000'000, {{Cause::kDataLoading, 30'000'000}});
  like.evidence = {evidence(Cause::kDataLoading, SubCause::kWorkersCpuBound, "DataLoader.__next__", 30'000'000)};
  like.evidence[0].longest_at = TimePoint{1'500'000'000};
  const Finding finding = diagnose_one(rank_of(like)).findings.at(0);
  EXPECT_EQ(finding.sub_cause, SubCause::kWorkersCpuBound);
  EXPECT_EQ(finding.advice,
            advice_for(FindingCause::kDataLoading, SubCause::kWorkersCpuBound, Wording::kPlain));
  EXPECT_THAT(finding.evidence, Contains("the ledger charges 30.0 % of wall to it, 30.000 ms an iteration"));
  EXPECT_THAT(finding.evidence,
              Contains("DataLoader.__next__ on thread 7: 20 times in 20 of 20 iterations, 600.000 ms of host "
                       "time, 600.000 ms of idle charged; most in iteration 0, at +1.500000 s"));
}

TEST(Findings, ManyGoodSteadyIterationsGiveHighConfidence) {
  RankBasis rank = rank_of(ledger(0, 700'000, {{Cause::kSync, 300'000}}));
  EXPECT_EQ(diagnose_one(rank).findings[0].confidence, Confidence::kHigh);
  rank.quality[Defect::kOrphan] = 1;
  EXPECT_EQ(diagnose_one(rank).findings[0].confidence, Confidence::kMedium);
}

// A cost between two and four percent is nearer to none than to what anybody would act on.
TEST(Findings, ACostNearTheThresholdIsNotSaidWithHighConfidence) {
  const auto confidence_at = [](std::int64_t cost) {
    return diagnose_one(rank_of(ledger(0, 1'000'000 - cost, {{Cause::kSync, cost}}))).findings.at(0).confidence;
  };
  EXPECT_EQ(confidence_at(20'000), Confidence::kMedium);
  EXPECT_EQ(confidence_at(39'000), Confidence::kMedium);
  EXPECT_EQ(confidence_at(40'000), Confidence::kHigh);
}

// 3 % of wall on average, from iterations of which two in five cost 7.5 % and the rest nothing: the
// interval of 95 % reaches from 1.2 to 4.8 %.
TEST(Findings, ACostWhoseIntervalReachesTheThresholdHasLowConfidenceAndMakesNoVerdict) {
  std::vector<IterationLedger> iterations;
  for (int i = 0; i < 20; ++i)
    iterations.push_back(i % 5 < 2 ? ledger(0, 925'000, {{Cause::kHost, 75'000}}) : ledger(0, 1'000'000));
  const Diagnosis diagnosis = diagnose_one(rank_of(iterations));
  ASSERT_THAT(diagnosis.findings, SizeIs(1));
  EXPECT_NEAR(diagnosis.findings[0].share, 0.03, 1e-9);
  EXPECT_NEAR(diagnosis.findings[0].share_margin, 2.093 * 0.075 * std::sqrt(0.4 * 0.6 / 19), 1e-6);
  EXPECT_EQ(diagnosis.findings[0].confidence, Confidence::kLow);
  EXPECT_EQ(diagnosis.verdict, "none");
  EXPECT_THAT(diagnosis.reason, HasSubstr("beyond what iterations differ by"));
}

// Of twenty iterations one costs as much as all the others last: it may be chance.
TEST(Findings, AnIntervalThatReachesNothingIsNoFinding) {
  std::vector<IterationLedger> iterations(20, ledger(0, 1'000'000));
  iterations[7] = ledger(0, 1'000'000, {{Cause::kSync, 2'000'000}});
  const Diagnosis diagnosis = diagnose_one(rank_of(iterations));
  EXPECT_THAT(diagnosis.findings, IsEmpty());
  EXPECT_EQ(diagnosis.verdict, "none");
}

TEST(Findings, ANamedEventThatComesBackIsAFindingHoweverSeldom) {
  std::vector<IterationLedger> iterations(20, ledger(0, 1'000'000));
  for (const std::size_t i : {4u, 14u}) {
    iterations[i] = ledger(0, 1'000'000, {{Cause::kCheckpoint, 2'000'000}});
    iterations[i].evidence = {evidence(Cause::kCheckpoint, SubCause::kNone, "torch.save", 2'000'000)};
  }
  const Diagnosis diagnosis = diagnose_one(rank_of(iterations));
  ASSERT_THAT(diagnosis.findings, SizeIs(1));
  EXPECT_EQ(diagnosis.findings[0].cause, FindingCause::kCheckpoint);
}

TEST(Findings, BatchesThatWereReadyAndSlowToTakeAreNotSaidToComeLate) {
  IterationLedger like = ledger(0, 10'000'000, {{Cause::kDataLoading, 1'500'000}});
  like.evidence = {evidence(Cause::kDataLoading, SubCause::kNone, "_MultiProcessingDataLoaderIter.__next__", 1'500'000)};
  EXPECT_EQ(diagnose_one(rank_of(like)).findings.at(0).sub_cause, SubCause::kUnpickling);
  like.evidence[0].host = milliseconds(3);
  EXPECT_EQ(diagnose_one(rank_of(like)).findings.at(0).sub_cause, SubCause::kNone);
}

TEST(Findings, HostCodeThatNothingNamesMayBeALoaderAndHearsHowToSaySo) {
  RankBasis torch = rank_of(ledger(0, 10'000'000, {{Cause::kHost, 5'000'000}}));
  torch.torch = true;
  EXPECT_THAT(diagnose_one(torch).findings.at(0).advice, HasSubstr("gpudiag.torch.range(\"load\", cause=\"data_loading\")"));
}

// Twelve of twenty cost half of their wall: 30 % on average, and the error of it is over 2 %.
TEST(Findings, ACostThatVariesAsMuchAsTheThresholdHasMediumConfidenceAndItsVerdict) {
  std::vector<IterationLedger> iterations;
  for (int i = 0; i < 20; ++i)
    iterations.push_back(i % 5 < 3 ? ledger(0, 500'000, {{Cause::kHost, 500'000}}) : ledger(0, 1'000'000));
  const Diagnosis diagnosis = diagnose_one(rank_of(iterations));
  EXPECT_NEAR(diagnosis.findings.at(0).share, 0.3, 1e-9);
  EXPECT_EQ(diagnosis.findings[0].confidence, Confidence::kMedium);
  EXPECT_EQ(diagnosis.verdict, "host");
}

// Every twentieth iteration takes a retry of the allocator: over many it is as sure as any other.
TEST(Findings, WhatComesEverySoManyIterationsIsNoNoise) {
  std::vector<IterationLedger> iterations;
  for (int i = 0; i < 800; ++i)
    iterations.push_back(i % 20 == 7 ? ledger(0, 1'000'000, {{Cause::kAllocation, 4'000'000}}) : ledger(0, 1'000'000));
  const Finding finding = diagnose_one(rank_of(iterations)).findings.at(0);
  EXPECT_EQ(finding.confidence, Confidence::kHigh);
  EXPECT_LT(finding.share_margin, 1e-6);
}

// What disturbs one iteration disturbs its neighbours: 200 iterations in a row that cost 15 % of wall
// among 1000 are one event, and not 200 that agree.
TEST(Findings, ABurstIsOneEventHoweverManyIterationsItHas) {
  std::vector<IterationLedger> iterations;
  for (int i = 0; i < 1000; ++i)
    iterations.push_back(i >= 400 && i < 600 ? ledger(0, 850'000, {{Cause::kHost, 150'000}}) : ledger(0, 1'000'000));
  const Finding finding = diagnose_one(rank_of(iterations)).findings.at(0);
  EXPECT_NEAR(finding.share, 0.03, 1e-9);
  EXPECT_EQ(finding.confidence, Confidence::kLow);
}

// The ranks of a job wait for each other, so eight of them do not tell eight times as much as one.
TEST(Findings, TheRanksOfAJobScatterTogether) {
  std::vector<IterationLedger> iterations;
  for (int i = 0; i < 20; ++i)
    iterations.push_back(i % 5 < 2 ? ledger(0, 925'000, {{Cause::kHost, 75'000}}) : ledger(0, 1'000'000));
  std::vector<RankBasis> ranks;
  for (std::uint32_t r = 0; r < 8; ++r) ranks.push_back(rank_of(iterations, r));
  EXPECT_NEAR(diagnose(ranks).findings.at(0).share_margin, diagnose_one(ranks[0]).findings.at(0).share_margin, 1e-9);
}

TEST(Findings, FewerThanThreeSteadyIterationsGiveLowConfidence) {
  RankBasis rank = rank_of(ledger(0, 700'000, {{Cause::kSync, 300'000}}));
  rank.steady = false;
  EXPECT_EQ(diagnose_one(rank).findings[0].confidence, Confidence::kLow);
}

TEST(Findings, CausesThatOnlyHelpTogetherAreSaidSo) {
  IterationLedger like = ledger(0, 60'000'000, {{Cause::kSync, 20'000'000}, {Cause::kHost, 20'000'000}});
  like.replay_cost[at(Cause::kSync)] = milliseconds(1);
  like.replay_cost[at(Cause::kHost)] = milliseconds(1);
  like.replay_cost_all_host = milliseconds(38);
  const Diagnosis diagnosis = diagnose_one(rank_of(like));
  ASSERT_THAT(diagnosis.findings, SizeIs(1));
  EXPECT_EQ(diagnosis.verdict, "host_together");
  EXPECT_THAT(diagnosis.findings[0].evidence, Contains("sync: 1.0 % saved, 20.0 % charged"));
}

// What each alone saves comes out negative where the replay without it is later: printed, that is 0.
TEST(Findings, NoSavingIsPrintedAsNegative) {
  IterationLedger like = ledger(0, 60'000'000, {{Cause::kSync, 20'000'000}, {Cause::kHost, 20'000'000}});
  like.replay_cost[at(Cause::kSync)] = microseconds(-100);
  like.replay_cost[at(Cause::kHost)] = microseconds(-3000);
  like.replay_cost_all_host = milliseconds(38);
  const Diagnosis diagnosis = diagnose_one(rank_of(like));
  ASSERT_THAT(diagnosis.findings, SizeIs(1));
  EXPECT_THAT(diagnosis.findings[0].evidence, Contains("sync: 0.0 % saved, 20.0 % charged"));
  for (const std::string& line : diagnosis.findings[0].evidence) EXPECT_THAT(line, Not(HasSubstr("-")));
}

// Without each alone 3 % would be saved, without all 5.5 %: less than twice the threshold more.
TEST(Findings, CausesThatGainALittleMoreTogetherAreNotSaidToHideEachOther) {
  IterationLedger like = ledger(0, 90'000'000, {{Cause::kSync, 5'000'000}, {Cause::kHost, 5'000'000}});
  like.replay_cost[at(Cause::kSync)] = microseconds(1500);
  like.replay_cost[at(Cause::kHost)] = microseconds(1500);
  like.replay_cost_all_host = microseconds(5500);
  EXPECT_EQ(diagnose_one(rank_of(like)).verdict, "none");
}

// 9 % more without all of them than without each, on average; but in two iterations of five 22.5 %
// and in the others nothing, so that it may be 3.6 %.
TEST(Findings, CausesThatSometimesHideEachOtherAreNotSaidToDoSo) {
  std::vector<IterationLedger> iterations;
  for (int i = 0; i < 20; ++i) {
    IterationLedger one = ledger(0, 70'000'000, {{Cause::kSync, 15'000'000}, {Cause::kHost, 15'000'000}});
    one.replay_cost[at(Cause::kSync)] = one.replay_cost[at(Cause::kHost)] = microseconds(500);
    one.replay_cost_all_host = i % 5 < 2 ? microseconds(23'500) : milliseconds(1);
    iterations.push_back(one);
  }
  EXPECT_EQ(diagnose_one(rank_of(iterations)).verdict, "none");
}

// As on a machine whose processors are taken: without all 28 % would be saved in each iteration, without
// the sync alone 65 or -55 %, as it happens. Then nobody knows what the sync alone would save.
TEST(Findings, ACauseOfUnknownSavingIsNotSaidToBeHidden) {
  std::vector<IterationLedger> iterations;
  for (int i = 0; i < 20; ++i) {
    IterationLedger one = ledger(0, 70'000'000, {{Cause::kSync, 15'000'000}, {Cause::kHost, 15'000'000}});
    one.replay_cost[at(Cause::kSync)] = milliseconds(i % 2 == 0 ? 65 : -55);
    one.replay_cost[at(Cause::kHost)] = milliseconds(1);
    one.replay_cost_all_host = milliseconds(28);
    iterations.push_back(one);
  }
  const Diagnosis diagnosis = diagnose_one(rank_of(iterations));
  EXPECT_EQ(diagnosis.verdict, "none");
  EXPECT_THAT(diagnosis.findings, IsEmpty());
}

// Either of a sync and a slow host alone saves next to nothing, both save 40 %.
RankBasis rank_with_a_hidden_pair(DurationNs both) {
  IterationLedger like = ledger(0, 55'000'000, {{Cause::kSync, 15'000'000}, {Cause::kHost, 30'000'000}});
  like.replay_cost[at(Cause::kSync)] = milliseconds(1);
  like.replay_cost[at(Cause::kHost)] = DurationNs{500'000};
  like.replay_cost_all_host = milliseconds(42);
  like.what_if = {{{Removal::of(Cause::kSync), Removal::of(Cause::kHost)}, both}};
  return rank_of(like);
}

TEST(Findings, TwoCausesThatHideEachOtherAreOneFinding) {
  const Diagnosis diagnosis = diagnose_one(rank_with_a_hidden_pair(milliseconds(40)));
  ASSERT_THAT(diagnosis.findings, SizeIs(1)) << "removing all saves hardly more than these two";
  const Finding& pair = diagnosis.findings[0];
  EXPECT_EQ(pair.cause, FindingCause::kHost);
  EXPECT_EQ(pair.together_with, "sync");
  EXPECT_DOUBLE_EQ(pair.share, 0.4);
  EXPECT_EQ(pair.cost_per_iteration, milliseconds(40));
  EXPECT_NEAR(pair.speedup_if_fixed, 1 / 0.6, 1e-9);
  EXPECT_THAT(pair.evidence, Contains(HasSubstr("without host alone 0.5 % of wall would be saved, without sync "
                                                "alone 1.0 %, without both 40.0 %")));
  EXPECT_EQ(diagnosis.verdict, "host");
  EXPECT_THAT(diagnosis.reason, HasSubstr("it and sync hide each other"));
}

TEST(Findings, TwoCausesThatSaveLittleTogetherAreNoPair) {
  const Diagnosis diagnosis = diagnose_one(rank_with_a_hidden_pair(milliseconds(5)));
  ASSERT_THAT(diagnosis.findings, SizeIs(1));
  EXPECT_EQ(diagnosis.findings[0].cause, FindingCause::kHostTogether);
}

TEST(Findings, WhatWasAskedOfAFewIterationsOnlyIsNotSaidOfAll) {
  RankBasis rank = rank_with_a_hidden_pair(milliseconds(40));
  rank.sum.what_if[0].wall = DurationNs{rank.sum.wall.ns / 2 - 1};
  rank.sum.what_if[0].saved = DurationNs{rank.sum.what_if[0].wall.ns * 2 / 5};
  EXPECT_THAT(diagnose_one(rank).findings.at(0).together_with, IsEmpty());
}

TEST(Findings, SubCausesHaveTheirCosts) {
  IterationLedger like = ledger(0, 70'000'000, {{Cause::kSync, 30'000'000}});
  like.what_if = {{{Removal::of(Cause::kSync, SubCause::kItem), Removal{}}, milliseconds(8)},
                  {{Removal::of(Cause::kSync, SubCause::kDeviceSync), Removal{}}, milliseconds(20)}};
  const Finding found = diagnose_one(rank_of(like)).findings.at(0);
  ASSERT_THAT(found.sub_costs, SizeIs(2));
  EXPECT_EQ(found.sub_costs[0].sub_cause, SubCause::kDeviceSync);
  EXPECT_DOUBLE_EQ(found.sub_costs[0].share, 0.2);
  EXPECT_EQ(found.sub_costs[1].cost_per_iteration, milliseconds(8));
  EXPECT_THAT(found.evidence, Contains("removed alone, of wall: device_sync 20.0 %, item 8.0 %"));
}

TEST(Findings, WhatComesBackSeldomIsGivenWithItsPeriodAndSharedOut) {
  std::vector<IterationLedger> iterations(20, ledger(0, 10'000'000));
  for (const std::size_t i : {3u, 8u, 13u, 18u}) {
    iterations[i] = ledger(0, 10'000'000, {{Cause::kCheckpoint, 30'000'000}});
    iterations[i].evidence = {evidence(Cause::kCheckpoint, SubCause::kNone, "torch.save", 30'000'000)};
  }
  const Finding found = diagnose_one(rank_of(iterations)).findings.at(0);
  ASSERT_TRUE(found.every);
  EXPECT_DOUBLE_EQ(*found.every, 5);
  EXPECT_THAT(found.evidence, Contains("every 5 iterations on average; shared out over all, 6.000 ms each"));
  EXPECT_THAT(found.evidence, Contains(HasSubstr("torch.save on thread 7: 4 times in 4 of 20 iterations, every 5 iterations")));
}

TEST(Findings, WhatComesInEachIterationHasNoPeriod) {
  IterationLedger like = ledger(0, 10'000'000, {{Cause::kSync, 5'000'000}});
  like.evidence = {evidence(Cause::kSync, SubCause::kItem, "aten::item", 5'000'000)};
  EXPECT_FALSE(diagnose_one(rank_of(like)).findings.at(0).every);
}

TEST(Findings, CompilingAfterWarmUpIsAFindingOfItsOwn) {
  IterationLedger like = ledger(0, 10'000'000, {{Cause::kHost, 5'000'000}});
  like.evidence = {evidence(Cause::kHost, SubCause::kCompile, "CompiledFxGraph", 5'000'000)};
  EXPECT_EQ(diagnose_one(rank_of(like)).verdict, "recompilation");
  like.evidence[0].what = "cudaGraphInstantiate";
  EXPECT_EQ(diagnose_one(rank_of(like)).verdict, "graph_recapture");
  RankBasis short_run = rank_of(like);
  short_run.steady = false;
  EXPECT_EQ(diagnose_one(short_run).verdict, "host") << "of a run that never settled it may be the first time";
}

TEST(Findings, CausesThatAddUpAreNotSaidToHideEachOther) {
  IterationLedger like = ledger(0, 60'000'000, {{Cause::kSync, 20'000'000}, {Cause::kHost, 20'000'000}});
  like.replay_cost_all_host = milliseconds(40);
  EXPECT_THAT(diagnose_one(rank_of(like)).findings, SizeIs(2));
}

TEST(Findings, ACauseThatGainsMostOfItAloneIsNotHiddenByTheOthers) {
  IterationLedger like = ledger(0, 30'000'000, {{Cause::kDataLoading, 50'000'000}, {Cause::kHost, 20'000'000}});
  like.replay_cost[at(Cause::kDataLoading)] = milliseconds(48);
  like.replay_cost[at(Cause::kHost)] = milliseconds(1);
  like.replay_cost_all_host = milliseconds(69);
  EXPECT_EQ(diagnose_one(rank_of(like)).verdict, "data_loading");
}

// As resnet50_v100_workers0 has it: without launches 47 of 150 ms would go, 32 of which the loader
// would take in their place, and which are the loader's alone.
TEST(Findings, AnUpperBoundIsSaidToBeOneAndRankedByWhatItIsLeftWith) {
  IterationLedger like =
      ledger(0, 103'000'000, {{Cause::kDataLoading, 32'000'000}, {Cause::kLaunchOverhead, 15'000'000}});
  like.replay_cost[at(Cause::kLaunchOverhead)] = milliseconds(47);
  const Diagnosis diagnosis = diagnose_one(rank_of(like));
  ASSERT_THAT(diagnosis.findings, SizeIs(2));
  EXPECT_EQ(diagnosis.verdict, "data_loading");
  const Finding& launches = diagnosis.findings[1];
  EXPECT_EQ(launches.cause, FindingCause::kLaunchOverhead);
  EXPECT_TRUE(launches.upper_bound);
  EXPECT_NEAR(launches.share, 47.0 / 150, 1e-9);
  EXPECT_NEAR(launches.ranked_by, 15.0 / 150, 1e-9);
  EXPECT_EQ(launches.confidence, Confidence::kMedium);
  EXPECT_THAT(launches.evidence[0], HasSubstr("upper bound"));
  EXPECT_THAT(launches.evidence[0], HasSubstr("10.0 % of wall is left to it"));
  EXPECT_FALSE(diagnosis.findings[0].upper_bound);
  EXPECT_EQ(diagnosis.findings[0].confidence, Confidence::kHigh);
}

TEST(Findings, OurOwnTimeIsNoEvidence) {
  IterationLedger like = ledger(0, 70'000'000, {{Cause::kHost, 30'000'000}});
  like.evidence = {evidence(Cause::kHost, SubCause::kNone, "gpudiag", 10'000'000),
                   evidence(Cause::kHost, SubCause::kNone, "host", 20'000'000)};
  const Finding finding = diagnose_one(rank_of(like)).findings.at(0);
  EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("gpudiag"))));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("code that calls no CUDA function")));
}

TEST(Findings, AJobWithoutPyTorchIsNotToldToSetItsOptions) {
  RankBasis rank = rank_of(ledger(0, 70'000'000, {{Cause::kDataLoading, 30'000'000}}));
  EXPECT_THAT(diagnose_one(rank).findings.at(0).advice, Not(HasSubstr("num_workers")));
  rank.torch = true;
  EXPECT_THAT(diagnose_one(rank).findings.at(0).advice, HasSubstr("num_workers"));
}

TEST(Findings, ARankThatStandsOutHasItsOwn) {
  std::vector<RankBasis> ranks;
  for (std::uint32_t r = 0; r < 8; ++r)
    ranks.push_back(rank_of(r == 5 ? ledger(0, 900'000, {{Cause::kHost, 100'000}}) : ledger(0, 1'000'000), r));
  const Diagnosis diagnosis = diagnose(ranks);
  ASSERT_THAT(diagnosis.findings, SizeIs(1));
  EXPECT_EQ(diagnosis.findings[0].rank, 5u);
  EXPECT_DOUBLE_EQ(diagnosis.findings[0].share, 0.1);
}

TEST(Findings, ACauseOfAllRanksBelongsToTheJob) {
  std::vector<RankBasis> ranks;
  for (std::uint32_t r = 0; r < 4; ++r)
    ranks.push_back(rank_of(ledger(0, 900'000, {{Cause::kHost, 100'000}}), r));
  const Diagnosis diagnosis = diagnose(ranks);
  ASSERT_THAT(diagnosis.findings, SizeIs(1));
  EXPECT_EQ(diagnosis.findings[0].rank, std::nullopt);
  EXPECT_EQ(diagnosis.findings[0].cost_per_iteration, DurationNs{100'000});
}

TEST(Verdict, IsUnknownWhereMostIdleTimeHasNoEvidence) {
  IterationLedger like = ledger(0, 60'000'000, {{Cause::kUnknown, 30'000'000}, {Cause::kSync, 10'000'000}});
  EXPECT_EQ(diagnose_one(rank_of(like)).verdict, "unknown");
}

TEST(Verdict, IsRefusedWhereTheRecordsArePoor) {
  RankBasis rank = rank_of(ledger(0, 700'000, {{Cause::kSync, 300'000}}));
  rank.quality[Defect::kUntimed] = 200;
  const Diagnosis diagnosis = diagnose_one(rank);
  EXPECT_EQ(diagnosis.verdict, "poor_quality");
  EXPECT_THAT(diagnosis.findings, IsEmpty());
  EXPECT_THAT(diagnosis.reason, HasSubstr("untimed 200"));
}

TEST(Verdict, IsRefusedWhereNoIterationIsValid) {
  RankBasis rank;
  rank.operations = 5;
  rank.invalid_iterations = 2;
  rank.invalid_reasons[static_cast<std::size_t>(InvalidReason::kDropped)] = 7;
  const Diagnosis diagnosis = diagnose_one(rank);
  EXPECT_EQ(diagnosis.verdict, "poor_quality");
  EXPECT_THAT(diagnosis.reason, HasSubstr("dropped 7"));
}

TEST(Verdict, LaunchesWithoutAnyOperationAreNotAnIdleGpu) {
  RankBasis rank;
  rank.launches = 1000;
  const Diagnosis diagnosis = diagnose_one(rank);
  EXPECT_EQ(diagnosis.verdict, "no_gpu_activity");
  EXPECT_THAT(diagnosis.reason, HasSubstr("1000 launches"));
  EXPECT_THAT(diagnosis.reason, HasSubstr("WSL"));
}

TEST(Verdict, AJobWithoutCudaHasNone) {
  EXPECT_EQ(diagnose({}).verdict, "no_gpu_activity");
  EXPECT_THAT(diagnose({}).reason, HasSubstr("neither"));
}

TEST(Verdict, AJobThatDiedAtOnceIsNotSaidToHaveDoneNothing) {
  RankBasis rank;
  rank.finished = false;
  EXPECT_EQ(diagnose_one(rank).verdict, "no_gpu_activity");
  EXPECT_THAT(diagnose_one(rank).reason, HasSubstr("ended, without closing its session, before its first records"));
}

TEST(Verdict, LaunchOverheadIsNotBlamedWhereOurOwnCostExplainsIt) {
  IterationLedger like = ledger(0, 500'000, {{Cause::kLaunchOverhead, 500'000}});
  like.own = DurationNs{800'000};
  const Diagnosis diagnosis = diagnose_one(rank_of(like));
  EXPECT_EQ(diagnosis.verdict, "own_overhead");
  EXPECT_THAT(diagnosis.findings, IsEmpty());
  like.own = DurationNs{20'000};
  EXPECT_EQ(diagnose_one(rank_of(like)).verdict, "launch_overhead");
}

TEST(Verdict, HostCodeIsNotBlamedWhereItIsOurs) {
  IterationLedger like = ledger(0, 500'000, {{Cause::kHost, 500'000}});
  like.own = DurationNs{400'000};
  EXPECT_EQ(diagnose_one(rank_of(like)).verdict, "own_overhead");
}

TEST(Advice, ExistsForEveryCauseAndSubCause) {
  for (std::uint8_t cause = 0; cause <= static_cast<std::uint8_t>(FindingCause::kHostTogether); ++cause)
    for (std::uint8_t sub = 0; sub < kSubCauseNames.size(); ++sub)
      for (const Wording wording : {Wording::kPlain, Wording::kTorch})
        EXPECT_FALSE(advice_for(static_cast<FindingCause>(cause), static_cast<SubCause>(sub), wording).empty());
}

TEST(Advice, InPlainWordsNamesNothingOfPyTorch) {
  for (std::uint8_t cause = 0; cause <= static_cast<std::uint8_t>(FindingCause::kHostTogether); ++cause)
    for (std::uint8_t sub = 0; sub < kSubCauseNames.size(); ++sub) {
      const std::string text{
          advice_for(static_cast<FindingCause>(cause), static_cast<SubCause>(sub), Wording::kPlain)};
      for (const char* word : {"orch", "DataLoader", "num_workers", "prefetch_factor", "persistent_workers",
                               "pin_memory", "non_blocking", ".item", "DDP", "FSDP", "no_sync", "foreach",
                               "expandable", "tensor", "GIL"})
        EXPECT_THAT(text, Not(HasSubstr(word)));
    }
}

TEST(Advice, KnowsPyTorchByTheNamesItGives) {
  EXPECT_TRUE(is_name_of_torch("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"));
  EXPECT_TRUE(is_name_of_torch("cudaStreamSynchronize in aten::item"));
  EXPECT_FALSE(is_name_of_torch("cudaStreamSynchronize"));
  EXPECT_FALSE(is_name_of_torch("wait for batch"));
}

TEST(Advice, DiffersBetweenTheSubCausesOfDataLoading) {
  std::set<std::string_view> texts;
  for (SubCause sub : {SubCause::kInline, SubCause::kTooFewWorkers, SubCause::kWorkersCpuBound,
                       SubCause::kUnpickling, SubCause::kIoWait, SubCause::kPageFaults, SubCause::kWorkerStart})
    texts.insert(advice_for(FindingCause::kDataLoading, sub, Wording::kTorch));
  EXPECT_EQ(texts.size(), 7u);
}

TEST(EvidenceSums, CountTimesFromWhenTheRankBegan) {
  IterationLedger like = ledger(0, 70'000'000, {{Cause::kSync, 30'000'000}});
  like.evidence = {evidence(Cause::kSync, SubCause::kNone, "cudaStreamSynchronize", 30'000'000)};
  like.evidence[0].longest_at = TimePoint{7'000'000'500};
  EvidenceSums sums;
  sums.add(like, TimePoint{7'000'000'000});
  EXPECT_EQ(sums.of(Cause::kSync).at(0).total.longest_at, TimePoint{500});
}

TEST(EvidenceSums, StayBoundedHoweverManyNamesThereAre) {
  EvidenceSums sums;
  for (int i = 0; i < 5000; ++i) {
    IterationLedger made = ledger(0, 1);
    made.evidence = {evidence(Cause::kHost, SubCause::kNone, "range" + std::to_string(i), i)};
    sums.add(made);
  }
  EXPECT_LE(sums.of(Cause::kHost).size(), 1024u);
  EXPECT_EQ(sums.of(Cause::kHost)[0].total.what, "range4999");
}

}  // namespace
}  // namespace gpudiag
