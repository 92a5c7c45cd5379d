// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "attribution/ranks/bandwidth.hpp"
#include "attribution/ranks/clock_fit.hpp"
#include "attribution/ranks/job_table.hpp"
#include "attribution/ranks/waits.hpp"
#include "summaries.hpp"

namespace gpudiag {
namespace {

using testing::all_reduce;
using testing::data_parallel_job;
using testing::RankBuilder;

const auto nothing = [](std::uint32_t, std::uint32_t) { return std::int64_t{0}; };

TEST(Matching, GoesBySequenceNumberWhateverTheTimes) {
  RankBuilder a(0, 2);
  a.iteration(0, 0, 100).use(all_reduce(), 10, 20, 7).use(all_reduce(), 30, 40, 8);
  RankBuilder b(1, 2);
  b.iteration(0, 5'000'000, 100).use(all_reduce(), 5'000'030, 5'000'040, 8);
  const std::vector<RankSummary> ranks{a.made, b.made};
  const JobTable table = make_job_table(ranks);
  EXPECT_EQ(table.counts.collectives, 1u);
  EXPECT_EQ(table.counts.alone, 1u);
  EXPECT_EQ(table.uses[0].match, kNowhere);
  EXPECT_EQ(table.uses[1].match, table.uses[2].match);
}

TEST(Matching, GoesByOrderWithinTheIterationWhereNobodyNumbers) {
  RankBuilder a(0, 2);
  a.iteration(3, 0, 100).use(all_reduce(), 10, 20).use(all_reduce(), 30, 40);
  RankBuilder b(1, 2);  // has iteration 2 too
  b.iteration(2, 0, 50).use(all_reduce(), 5, 9).iteration(3, 60, 100).use(all_reduce(), 70, 80).use(all_reduce(), 90, 99);
  const std::vector<RankSummary> ranks{a.made, b.made};
  const JobTable table = make_job_table(ranks);
  EXPECT_EQ(table.counts.collectives, 2u);
  EXPECT_EQ(table.uses[0].match, table.uses[3].match);
  EXPECT_EQ(table.uses[1].match, table.uses[4].match);
}

TEST(Matching, GroupsAreApartAndOtherKindsAreNotJoined) {
  CollectiveInfo gather = all_reduce();
  gather.kind = CollectiveKind::kAllGather;
  RankBuilder a(0, 3);
  a.iteration(0, 0, 100).use(all_reduce("x"), 10, 20).use(all_reduce("y"), 30, 40);
  RankBuilder b(1, 3);
  b.iteration(0, 0, 100).use(all_reduce("y"), 31, 40).use(gather, 50, 60);
  RankBuilder c(2, 3);
  c.iteration(0, 0, 100).use(all_reduce("x"), 12, 20).use(all_reduce(), 50, 60);
  const std::vector<RankSummary> ranks{a.made, b.made, c.made};
  const JobTable table = make_job_table(ranks);
  EXPECT_EQ(table.counts.collectives, 2u);
  EXPECT_EQ(table.counts.kinds_differ, 1u);
  EXPECT_EQ(table.counts.alone, 2u);
}

TEST(Matching, ASendBelongsToItsReceiverAlone) {
  CollectiveInfo send = all_reduce("pipe", 4);
  send.kind = CollectiveKind::kSend;
  send.rank_in_group = 0;
  send.peer = 1;
  CollectiveInfo receive = send;
  receive.kind = CollectiveKind::kRecv;
  receive.rank_in_group = 1;
  receive.peer = 0;
  CollectiveInfo other = receive;
  other.rank_in_group = 2;
  other.peer = 1;
  RankBuilder a(0, 3);
  a.iteration(0, 0, 100).use(send, 10, 20);
  RankBuilder b(1, 3);
  b.iteration(0, 0, 100).use(receive, 5, 20);
  RankBuilder c(2, 3);
  c.iteration(0, 0, 100).use(other, 5, 20);
  const std::vector<RankSummary> ranks{a.made, b.made, c.made};
  const JobTable table = make_job_table(ranks);
  EXPECT_EQ(table.uses[0].match, table.uses[1].match);
  EXPECT_EQ(table.uses[2].match, kNowhere);
}

TEST(Clocks, AreAlignedOnTheEndsOfCollectives) {
  const auto ranks = data_parallel_job(4, 5, nothing, 1'500'000'000);
  JobTable table = make_job_table(ranks);
  const ClockFit fit = fit_clocks(ranks, table);
  align(table, fit);
  for (std::size_t r = 1; r < 4; ++r)
    EXPECT_EQ((fit.clocks[r].offset - fit.clocks[0].offset).ns, static_cast<std::int64_t>(r) * 1'500'000'000);
  for (const Match& match : table.matches)
    for (const std::uint32_t id : table.members_of(match)) EXPECT_EQ(table.uses[id].end, table.uses[table.members_of(match)[0]].end);
}

TEST(Clocks, OneThatIsSetWhileTheJobRunsIsNamedAndCorrected) {
  auto ranks = data_parallel_job(4, 10, nothing);
  for (std::size_t k = 6; k < 10; ++k) {
    ranks[2].uses[k].arrival += seconds(2);
    ranks[2].uses[k].end += seconds(2);
  }
  JobTable table = make_job_table(ranks);
  const ClockFit fit = fit_clocks(ranks, table);
  align(table, fit);
  EXPECT_TRUE(fit.clocks[2].jumped);
  EXPECT_FALSE(fit.clocks[1].jumped);
  EXPECT_EQ(fit.clocks[2].jumped_at, 6u);
  for (const Match& match : table.matches)
    for (const std::uint32_t id : table.members_of(match)) EXPECT_EQ(table.uses[id].end, table.uses[table.members_of(match)[0]].end);
}

TEST(Waits, RunFromTheOwnArrivalToTheLastOne) {
  const auto ranks = data_parallel_job(3, 3, [](std::uint32_t r, std::uint32_t) { return r == 1 ? 4'000 : 0; }, 700'000'000);
  JobTable table = make_job_table(ranks);
  align(table, fit_clocks(ranks, table));
  const auto waits = divide_communication(table, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(waits[0 * 3 + i]->straggler_wait, milliseconds(4));
    EXPECT_EQ(waits[0 * 3 + i]->transfer, milliseconds(1));
    EXPECT_EQ(waits[1 * 3 + i]->straggler_wait, DurationNs{});
    EXPECT_EQ(waits[1 * 3 + i]->transfer, milliseconds(1));
  }
}

TEST(Bandwidth, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(1'000'000'000, milliseconds(10)), 100.0);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::kAllGather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::kAllToAll, 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::kBroadcast, 8), 1.0);
}

}  // namespace
}  // namespace gpudiag
