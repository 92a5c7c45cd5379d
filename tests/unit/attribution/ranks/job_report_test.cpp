// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/job_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "attribution/ranks/job_findings.hpp"
#include "attribution/ranks/job_notes.hpp"
#include "summaries.hpp"

namespace gpudiag {
namespace {

using testing::all_reduce;
using testing::data_parallel_job;
using testing::RankBuilder;

const auto nothing = [](std::uint32_t, std::uint32_t) { return std::int64_t{0}; };

bool has_note(const JobReport& report, std::string_view code) {
  return std::any_of(report.notes.begin(), report.notes.end(), [&](const JobNote& note) { return note.code == code; });
}

TEST(JobReport, TheRankThatIsLateByItsOwnWorkIsNamedWithItsLedgersCause) {
  const JobReport report = analyze_job(data_parallel_job(8, 10, [](std::uint32_t r, std::uint32_t) { return r == 3 ? 5'000 : 0; }));
  ASSERT_EQ(report.blame.culprits.size(), 1u);
  const Culprit& culprit = report.blame.culprits.front();
  EXPECT_EQ(culprit.ranks, std::vector<std::uint32_t>{3});
  EXPECT_EQ(culprit.kind, CulpritKind::kData);
  EXPECT_EQ(culprit.cause, Cause::kDataLoading);
  EXPECT_EQ(culprit.sub_cause, SubCause::kTooFewWorkers);
  EXPECT_EQ(culprit.pattern, LatePattern::kPersistent);
  EXPECT_EQ(culprit.late, milliseconds(5));
  // The first iteration has nothing before it to measure from: nine of ten are cheaper by 5 ms.
  EXPECT_EQ(report.blame.what_if.recorded - report.blame.what_if.without_culprits, milliseconds(45));
}

TEST(JobReport, AHealthyJobAccusesNobody) {
  const JobReport report = analyze_job(data_parallel_job(8, 10, nothing));
  EXPECT_TRUE(report.blame.culprits.empty());
  EXPECT_EQ(report.blame.what_if.ideal, report.blame.what_if.recorded);
}

TEST(JobReport, ARankThatIsLateEveryThirdTimeIsPeriodic) {
  const JobReport report =
      analyze_job(data_parallel_job(4, 18, [](std::uint32_t r, std::uint32_t i) { return r == 2 && i % 3 == 1 ? 8'000 : 0; }));
  ASSERT_EQ(report.blame.culprits.size(), 1u);
  EXPECT_EQ(report.blame.culprits[0].pattern, LatePattern::kPeriodic);
  EXPECT_EQ(report.blame.culprits[0].period, 3u);
}

TEST(JobReport, StallsThatGoRoundAreOneTrouble) {
  const JobReport report =
      analyze_job(data_parallel_job(8, 16, [](std::uint32_t r, std::uint32_t i) { return r == i % 8 ? 6'000 : 0; }));
  ASSERT_EQ(report.blame.culprits.size(), 1u);
  EXPECT_EQ(report.blame.culprits[0].pattern, LatePattern::kRotating);
  EXPECT_EQ(report.blame.culprits[0].ranks.size(), 8u);
}

TEST(JobReport, EachIterationNamesItsSlowestRank) {
  const auto ranks = data_parallel_job(4, 6, [](std::uint32_t r, std::uint32_t i) { return r == 1 && i == 4 ? 7'000 : 0; });
  const JobReport report = analyze_job(ranks);
  EXPECT_EQ(report.iterations[4].slowest, 1u);
  EXPECT_EQ(report.iterations[4].late, milliseconds(7));
  EXPECT_EQ(report.iterations[3].slowest, std::nullopt);
  const auto latest = compare_latest(ranks);
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->index, 5u);
}

TEST(JobReport, TheFindingNamesTheRank) {
  const JobReport report = analyze_job(data_parallel_job(8, 12, [](std::uint32_t r, std::uint32_t) { return r == 3 ? 5'000 : 0; }));
  Diagnosis diagnosis;
  diagnosis.verdict = "none";
  add_culprits(diagnosis, report);
  ASSERT_EQ(diagnosis.findings.size(), 1u);
  EXPECT_EQ(diagnosis.findings[0].rank, 3u);
  EXPECT_EQ(name_of(diagnosis.findings[0].cause), "data_loading");
  EXPECT_EQ(diagnosis.verdict, "data_loading");
  EXPECT_NE(diagnosis.reason.find("rank 3 holds the job up (data_loading (too_few_workers))"), std::string::npos) << diagnosis.reason;
}

TEST(JobReport, MissingRanksAreNamed) {
  auto ranks = data_parallel_job(8, 4, nothing);
  ranks.erase(ranks.begin() + 5);
  ranks.erase(ranks.begin() + 1, ranks.begin() + 4);
  const JobReport report = analyze_job(ranks);
  ASSERT_TRUE(has_note(report, "missing_ranks"));
  EXPECT_NE(report.notes[0].text.find("ranks 1-3, 5"), std::string::npos) << report.notes[0].text;
}

TEST(JobReport, OtherIterationCountsHalfFilesAndVersionsAreSaid) {
  auto ranks = data_parallel_job(4, 6, nothing);
  ranks[1].iterations.resize(4);
  ranks[1].uses.resize(4);
  ranks[1].truncated = true;
  ranks[1].finished = false;
  ranks[2].broken = 2;
  ranks[2].who.version = "1.0";
  ranks[3].who.version = "1.1";
  const JobReport report = analyze_job(ranks);
  for (const char* code : {"iterations_differ", "truncated", "unfinished", "damaged", "versions_differ"})
    EXPECT_TRUE(has_note(report, code)) << code;
  EXPECT_EQ(report.counts.matched, report.counts.uses);
}

TEST(JobReport, GroupsThatAreMadeAndGivenUpMidRunAreSaid) {
  auto ranks = data_parallel_job(4, 10, nothing);
  for (RankSummary& rank : ranks) {
    rank.abouts.push_back(all_reduce("late group"));
    for (std::size_t k = 5; k < 8; ++k) rank.uses[k].about = 1;
  }
  const JobReport report = analyze_job(ranks);
  EXPECT_TRUE(has_note(report, "groups_come_and_go"));
  EXPECT_FALSE(has_note(analyze_job(data_parallel_job(4, 10, nothing)), "groups_come_and_go"));
}

TEST(JobReport, AnElasticRestartIsAJobOfItsOwn) {
  std::vector<RankSummary> all = data_parallel_job(4, 6, nothing);
  for (RankSummary& rank : data_parallel_job(3, 9, nothing)) {
    rank.who.restart = 1;
    all.push_back(std::move(rank));
  }
  const auto reports = analyze_jobs(all);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].members, (std::vector<std::size_t>{4, 5, 6}));
  EXPECT_TRUE(has_note(reports[0], "several_jobs"));
  EXPECT_EQ(reports[1].world_size, 4u);
}

TEST(JobReport, ARankThatIsThereTwiceIsSaidAndTheFirstIsCompared) {
  std::vector<RankSummary> all = data_parallel_job(3, 6, nothing);
  all.push_back(all[1]);
  const auto reports = analyze_jobs(all);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].members.size(), 3u);
  EXPECT_TRUE(has_note(reports[0], "duplicate_rank"));
}

TEST(JobReport, FilesThatNameNoJobAndNoWorldAreNotCompared) {
  auto ranks = data_parallel_job(3, 6, nothing);
  for (RankSummary& rank : ranks) {
    rank.who.job.clear();
    rank.who.world_size = 0;
  }
  EXPECT_TRUE(analyze_jobs(ranks).empty());
}

// Four micro-batches, each followed by a full all-reduce of the gradients.
TEST(RepeatedReductions, AreSeenInTheCountsOfCollectives) {
  std::vector<RankSummary> ranks;
  for (std::uint32_t r = 0; r < 2; ++r) {
    RankBuilder rank(r, 2);
    for (std::int64_t i = 0; i < 6; ++i) {
      rank.iteration(static_cast<std::uint64_t>(i), i * 40'000, 40'000);
      for (std::int64_t m = 0; m < 4; ++m)
        rank.use(all_reduce("all", 2, 100'000'000), i * 40'000 + m * 10'000 + 8'000, i * 40'000 + m * 10'000 + 10'000);
    }
    ranks.push_back(rank.made);
  }
  EXPECT_EQ(analyze_job(ranks).repeated_reductions, 4u);
}

// Four equal buckets of one backward pass, behind a forward pass.
TEST(RepeatedReductions, BucketsOfOneBackwardPassAreNone) {
  std::vector<RankSummary> ranks;
  for (std::uint32_t r = 0; r < 2; ++r) {
    RankBuilder rank(r, 2);
    for (std::int64_t i = 0; i < 6; ++i) {
      rank.iteration(static_cast<std::uint64_t>(i), i * 40'000, 40'000);
      for (std::int64_t b = 0; b < 4; ++b)
        rank.use(all_reduce("all", 2, 25'000'000), i * 40'000 + 15'000 + b * 6'000, i * 40'000 + 17'000 + b * 6'000);
    }
    ranks.push_back(rank.made);
  }
  EXPECT_EQ(analyze_job(ranks).repeated_reductions, 0u);
}

TEST(NumberList, IsShort) {
  EXPECT_EQ(number_list({3, 1, 2, 7}), "1-3, 7");
  EXPECT_EQ(number_list({5}), "5");
  EXPECT_EQ(number_list({0, 2, 4, 6, 8, 10, 12, 14, 16, 18}), "0, 2, 4, 6, 8, 10, 12, 14 and 2 more");
}

}  // namespace
}  // namespace gpudiag
