// SPDX-License-Identifier: Apache-2.0
#include "sources/host/watch_plan.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

constexpr ThreadId kTrainer{41};

IterationLedger with_gaps(Cause cause, DurationNs wall, DurationNs host, std::uint64_t count) {
  IterationLedger ledger;
  ledger.wall = wall;
  ledger.evidence.push_back({cause, SubCause::kNone, "host", kTrainer, count, host, host, {}, 0});
  return ledger;
}

TEST(WatchPlan, BeforeAnythingIsKnownNobodyLooks) {
  WatchPlan plan;
  plan.tick({seconds(1).ns});
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, LongGapsAreLookedIntoFourTimesEach) {
  WatchPlan plan;
  plan.iteration(with_gaps(Cause::kHost, milliseconds(100), milliseconds(80), 2), {0});
  ASSERT_EQ(plan.watched().size(), 1u);
  EXPECT_EQ(plan.watched()[0].thread, kTrainer);
  EXPECT_EQ(plan.period(), milliseconds(10));
  EXPECT_FALSE(plan.workers_wanted({0}));
}

TEST(WatchPlan, ManyShortGapsAreNot) {
  WatchPlan plan;
  plan.iteration(with_gaps(Cause::kHost, milliseconds(100), milliseconds(80), 40), {0});
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, NorIsOneThatCostsNothingToSpeakOf) {
  WatchPlan plan;
  plan.iteration(with_gaps(Cause::kHost, seconds(1), milliseconds(8), 1), {0});
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, WaitsForDataAskForTheWorkersToo) {
  WatchPlan plan;
  plan.iteration(with_gaps(Cause::kDataLoading, milliseconds(100), milliseconds(80), 1), {0});
  EXPECT_TRUE(plan.workers_wanted({0}));
}

TEST(WatchPlan, OtherCausesNeedNoLooks) {
  WatchPlan plan;
  plan.iteration(with_gaps(Cause::kSync, milliseconds(100), milliseconds(80), 1), {0});
  plan.iteration(with_gaps(Cause::kCheckpoint, milliseconds(100), milliseconds(80), 1), {0});
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, WhenGapsAreLongNoMoreLookingEnds) {
  WatchPlan plan;
  plan.iteration(with_gaps(Cause::kHost, milliseconds(100), milliseconds(80), 2), {0});
  plan.tick({seconds(4).ns});
  EXPECT_TRUE(plan.period().has_value());
  plan.call(kTrainer, {{seconds(6).ns - 5}, {seconds(6).ns}});
  plan.tick({seconds(6).ns});
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, AfterASilenceTheThreadOfTheLastCallIsLookedAt) {
  WatchPlan plan;
  plan.call(kTrainer, {{-3}, {0}});
  plan.call(ThreadId{42}, {{-7}, {-5}});
  plan.tick({milliseconds(200).ns});
  EXPECT_FALSE(plan.period().has_value());
  plan.tick({milliseconds(400).ns});
  ASSERT_EQ(plan.watched().size(), 1u);
  EXPECT_EQ(plan.watched()[0].thread, kTrainer);
  EXPECT_EQ(plan.period(), milliseconds(50));
  EXPECT_TRUE(plan.workers_wanted({milliseconds(400).ns}));
}

TEST(WatchPlan, TheLongerTheSilenceTheFewerTheLooks) {
  WatchPlan plan;
  plan.call(kTrainer, {{-3}, {0}});
  plan.tick({seconds(10).ns});
  EXPECT_EQ(plan.period(), milliseconds(250));
  plan.tick({seconds(600).ns});
  EXPECT_EQ(plan.period(), seconds(1));
}

/// Calls of 1 ms that begin each `every`, delivered each 200 ms for a second.
void run_calls(WatchPlan& plan, DurationNs every, ThreadId thread = kTrainer, DurationNs length = milliseconds(1)) {
  TimePoint next{0};
  for (TimePoint tick{0}; tick <= TimePoint{seconds(1).ns}; tick += milliseconds(200)) {
    for (; next < tick; next += every) plan.call(thread, {next, next + length});
    plan.tick(tick);
  }
}

TEST(WatchPlan, BeforeTheFirstLedgerLongSilencesBetweenCallsDo) {
  WatchPlan plan;
  run_calls(plan, milliseconds(41));
  ASSERT_EQ(plan.watched().size(), 1u);
  EXPECT_EQ(plan.watched()[0].thread, kTrainer);
  EXPECT_EQ(plan.period(), milliseconds(10));
}

TEST(WatchPlan, OneLongSilenceIsAHiccup) {
  WatchPlan plan;
  run_calls(plan, milliseconds(3));
  plan.call(kTrainer, {{milliseconds(1100).ns}, {milliseconds(1101).ns}});
  plan.tick({milliseconds(1200).ns});
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, ShortSilencesDoNot) {
  WatchPlan plan;
  run_calls(plan, milliseconds(3));
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, NorDoCallsThatTakeLong) {
  WatchPlan plan;
  run_calls(plan, milliseconds(41), kTrainer, milliseconds(40));
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, AThreadIsNotSilentWhileAnotherCalls) {
  WatchPlan plan;
  for (TimePoint tick{0}; tick <= TimePoint{seconds(1).ns}; tick += milliseconds(200)) {
    const TimePoint from = tick - milliseconds(200);
    // Delivered a thread after the other: forward on one, backward on the other.
    for (DurationNs at; at < milliseconds(200); at += milliseconds(40)) {
      plan.call(kTrainer, {from + at, from + at + milliseconds(20)});
    }
    for (DurationNs at = milliseconds(20); at < milliseconds(200); at += milliseconds(40)) {
      plan.call(ThreadId{42}, {from + at, from + at + milliseconds(20)});
    }
    plan.tick(tick);
  }
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, OnceALedgerShowsNoGapSilencesAreNoneOfTheGpus) {
  WatchPlan plan;
  plan.iteration(IterationLedger{}, {0});
  run_calls(plan, milliseconds(41));
  EXPECT_FALSE(plan.period().has_value());
}

TEST(WatchPlan, OurOwnTimeIsNotLookedAt) {
  IterationLedger ledger = with_gaps(Cause::kHost, milliseconds(100), milliseconds(80), 2);
  ledger.evidence[0].what = "gpudiag";
  WatchPlan plan;
  plan.iteration(ledger, {0});
  EXPECT_FALSE(plan.period().has_value());
}

}  // namespace
}  // namespace gpudiag
