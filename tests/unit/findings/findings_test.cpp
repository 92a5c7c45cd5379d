// SPDX-License-Identifier: Apache-2.0
#include "attribution/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "attribution/advice.hpp"
#include "ledgers.hpp"

namespace gpudiag {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using test::evidence;
using test::ledger;

// Twenty like iterations of a rank, steady.
RankBasis rank_of(const IterationLedger& like, std::uint32_t rank = 0) {
  RankBasis basis;
  basis.rank = rank;
  basis.steady = true;
  basis.quality.records = 10'000;
  for (std::uint64_t i = 0; i < 20; ++i) {
    IterationLedger one = like;
    one.index = i;
    basis.sum.add(one);
    basis.evidence.add(one);
    basis.launches += one.launches;
    basis.operations += one.operations;
  }
  basis.iterations = 20;
  return basis;
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
  EXPECT_EQ(finding.advice, advice_for(FindingCause::kDataLoading, SubCause::kWorkersCpuBound));
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

TEST(Verdict, LaunchOverheadIsNotBlamedWhereOurOwnCostExplainsIt) {
  IterationLedger like = ledger(0, 500'000, {{Cause::kLaunchOverhead, 500'000}});
  like.own = DurationNs{800'000};
  const Diagnosis diagnosis = diagnose_one(rank_of(like));
  EXPECT_EQ(diagnosis.verdict, "own_overhead");
  EXPECT_THAT(diagnosis.findings, IsEmpty());
  like.own = DurationNs{20'000};
  EXPECT_EQ(diagnose_one(rank_of(like)).verdict, "launch_overhead");
}

TEST(Advice, ExistsForEveryCauseAndSubCause) {
  for (std::uint8_t cause = 0; cause <= static_cast<std::uint8_t>(FindingCause::kHostTogether); ++cause)
    for (std::uint8_t sub = 0; sub < kSubCauseNames.size(); ++sub)
      EXPECT_FALSE(advice_for(static_cast<FindingCause>(cause), static_cast<SubCause>(sub)).empty());
}

TEST(Advice, DiffersBetweenTheSubCausesOfDataLoading) {
  std::set<std::string_view> texts;
  for (SubCause sub : {SubCause::kInline, SubCause::kTooFewWorkers, SubCause::kWorkersCpuBound,
                       SubCause::kUnpickling, SubCause::kIoWait, SubCause::kPageFaults, SubCause::kWorkerStart})
    texts.insert(advice_for(FindingCause::kDataLoading, sub));
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
