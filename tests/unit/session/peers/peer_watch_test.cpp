// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peer_watch.hpp"

#include <gtest/gtest.h>

#include "peer_case.hpp"

namespace gpudiag {
namespace {

constexpr TimePoint at(std::int64_t s) { return TimePoint{} + seconds(s); }

std::vector<PeerView> four(DurationNs late, std::uint32_t who, std::size_t iterations = 12) {
  std::vector<PeerView> peers;
  for (std::uint32_t r = 0; r < 4; ++r) peers.push_back(peer(r, 4, iterations, r == who ? late : DurationNs{}, late));
  return peers;
}

TEST(PeerWatch, NamesTheSlowestRankAndItsCause) {
  PeerWatch watch{seconds(10)};
  const auto lines = watch.update(four(milliseconds(41), 3), at(10));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].code, "slowest_rank");
  EXPECT_TRUE(lines[0].text.starts_with("slowest rank 3: +41 ms data_loading (too_few_workers) (in ")) << lines[0].text;
}

// As in a DDP job whose first buckets are reduced beside the backward pass: the late rank waits for none.
TEST(PeerWatch, NamesTheRankThatNeedsLongestByItselfWhereArrivalsDoNotTell) {
  auto peers = four(milliseconds(41), 3);
  for (PeerView& one : peers) one.state.summary.uses.clear();
  for (PeerView& one : peers)
    for (RankIteration& iteration : one.state.summary.iterations) iteration.first_use = iteration.use_count = 0;
  PeerWatch watch{seconds(10)};
  const auto lines = watch.update(peers, at(10));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].text.starts_with("slowest rank 3: +41 ms data_loading (too_few_workers) (in 12 of the last 12 "))
      << lines[0].text;
}

/// Rank 3 late in the first `times` of 12 iterations, the others waiting for it.
std::vector<PeerView> late_at_times(std::size_t times, DurationNs late) {
  auto peers = four({}, 3);
  const auto sync = static_cast<std::size_t>(Cause::kSync);
  for (std::size_t r = 0; r < peers.size(); ++r) {
    RankSummary& summary = peers[r].state.summary;
    DurationNs shift;
    for (std::size_t i = 0; i < summary.iterations.size(); ++i) {
      RankIteration& iteration = summary.iterations[i];
      CollectiveUse& use = summary.uses[i];
      iteration.start += shift;
      use.arrival += shift;
      if (i < times) {
        shift += late;
        iteration.wall += late;
        if (r == 3) {
          iteration.idle += late;
          iteration.idle_by_cause[sync] += late;
          use.arrival += late;
        } else {
          iteration.communication += late;
        }
      }
      use.start = use.arrival;
      use.end += shift;
      use.exposed = use.end - use.start;
    }
  }
  return peers;
}

TEST(PeerWatch, ATwitchOrTwoOfABusyMachineIsNotWorthALine) {
  PeerWatch watch{seconds(10)};
  EXPECT_TRUE(watch.update(late_at_times(2, milliseconds(3)), at(10)).empty());
  EXPECT_EQ(watch.update(late_at_times(4, milliseconds(3)), at(11)).size(), 0u);  // the same iterations: no news
  PeerWatch other{seconds(10)};
  EXPECT_EQ(other.update(late_at_times(4, milliseconds(3)), at(11)).size(), 1u);
}

TEST(PeerWatch, SaysNothingOfRanksThatAreAlike) {
  PeerWatch watch{seconds(10)};
  EXPECT_TRUE(watch.update(four({}, 3), at(10)).empty());
}

TEST(PeerWatch, WaitsForSomeIterations) {
  PeerWatch watch{seconds(10)};
  EXPECT_TRUE(watch.update(four(milliseconds(41), 3, 2), at(10)).empty());
}

TEST(PeerWatch, ComparesWhatAllRanksHave) {
  auto peers = four(milliseconds(41), 3, 40);
  const PeerView lagging = peer(1, 4, 20, {}, milliseconds(41));
  peers[1] = lagging;
  PeerWatch watch{seconds(10)};
  const auto lines = watch.update(peers, at(10));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].text.starts_with("slowest rank 3: +41 ms")) << lines[0].text;
}

TEST(PeerWatch, RepeatsItselfEveryTenSecondsWhileThereIsNews) {
  PeerWatch watch{seconds(10)};
  EXPECT_EQ(watch.update(four(milliseconds(41), 3, 12), at(10)).size(), 1u);
  EXPECT_TRUE(watch.update(four(milliseconds(42), 3, 13), at(11)).empty());
  const auto again = watch.update(four(milliseconds(43), 3, 14), at(21));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].again);
  EXPECT_TRUE(watch.update(four(milliseconds(43), 3, 14), at(40)).empty());  // the job stands
}

TEST(PeerWatch, AnotherRankIsNews) {
  PeerWatch watch{seconds(10)};
  watch.update(four(milliseconds(41), 3, 12), at(10));
  const auto lines = watch.update(four(milliseconds(20), 1, 13), at(11));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].text.starts_with("slowest rank 1: +20 ms")) << lines[0].text;
  EXPECT_FALSE(lines[0].again);
}

std::vector<PeerView> waiting_for_rank_2() {
  std::vector<PeerView> peers{peer(0, 3, 1, {}, {}), peer(1, 3, 1, {}, {}), peer(2, 3, 1, {}, {})};
  peers[0].state.groups.push_back(progress(7, seconds(12)));
  peers[1].state.groups.push_back(progress(7, seconds(11)));
  peers[2].state.groups.push_back(progress(5));
  peers[2].state.doing = "DataLoader.__next__";
  peers[2].state.doing_for = seconds(13);
  return peers;
}

TEST(PeerWatch, ACollectiveThatDoesNotEndNamesWhoIsMissingAndWhatItsHostDoes) {
  PeerWatch watch{seconds(10)};
  const auto lines = watch.update(waiting_for_rank_2(), at(20));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].code, "collective_stuck");
  EXPECT_EQ(lines[0].text, "all_reduce number 5 of a group of 3 has not ended for 12 s: rank 2 has not come to it; "
                           "rank 2: DataLoader.__next__ for 13 s, 1 iterations ended");
  EXPECT_TRUE(watch.update(waiting_for_rank_2(), at(21)).empty());  // said once
}

TEST(PeerWatch, AShortWaitIsNone) {
  PeerWatch watch{seconds(30)};
  EXPECT_TRUE(watch.update(waiting_for_rank_2(), at(20)).empty());
}

TEST(PeerWatch, WhereAllHaveComeTheTransferHangs) {
  auto peers = waiting_for_rank_2();
  for (PeerView& one : peers) one.state.groups[0] = progress(7, seconds(31));
  PeerWatch watch{seconds(10)};
  const auto lines = watch.update(peers, at(20));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].text, "all_reduce number 6 of a group of 3 has not ended for 31 s: all its ranks have come to it, "
                           "the transfer itself hangs");
}

TEST(PeerWatch, WhereAllHaveComeItTakesLongerToBeSure) {
  auto peers = waiting_for_rank_2();
  for (PeerView& one : peers) one.state.groups[0] = progress(7, seconds(29));
  PeerWatch watch{seconds(10)};
  EXPECT_TRUE(watch.update(peers, at(20)).empty());
}

TEST(PeerWatch, TheMissingRanksOwnWaitSaysNothing) {
  auto peers = waiting_for_rank_2();
  peers[0].state.groups[0].waiting = peers[1].state.groups[0].waiting = {};
  peers[2].state.groups[0].waiting = seconds(60);
  PeerWatch watch{seconds(10)};
  EXPECT_TRUE(watch.update(peers, at(20)).empty());
}

TEST(PeerWatch, OfARankThatIsGoneIsSaidOnce) {
  auto peers = waiting_for_rank_2();
  peers[2].lives = false;
  PeerWatch watch{seconds(60)};
  const auto lines = watch.update(peers, at(20));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].code, "rank_gone");
  EXPECT_TRUE(lines[0].text.starts_with("rank 2 is gone without an end (process 1002 on a)")) << lines[0].text;
  EXPECT_TRUE(watch.update(peers, at(21)).empty());
}

TEST(PeerWatch, ARankThatHasLeftInOrderIsNotMissed) {
  auto peers = waiting_for_rank_2();
  peers[2].state.left = true;
  peers[2].silent_for = seconds(60);
  PeerWatch watch{seconds(60)};
  EXPECT_TRUE(watch.update(peers, at(20)).empty());
}

TEST(PeerWatch, ASilentRankIsSaidAgainOnlyAfterItHasSpoken) {
  auto peers = waiting_for_rank_2();
  peers[2].silent_for = seconds(9);
  PeerWatch watch{seconds(60)};
  auto lines = watch.update(peers, at(20));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].code, "rank_silent");
  EXPECT_TRUE(watch.update(peers, at(21)).empty());
  peers[2].silent_for = {};
  EXPECT_TRUE(watch.update(peers, at(22)).empty());
  peers[2].silent_for = seconds(9);
  EXPECT_EQ(watch.update(peers, at(31)).size(), 1u);
}

}  // namespace
}  // namespace gpudiag
