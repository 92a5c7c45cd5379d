// SPDX-License-Identifier: Apache-2.0
#include "record/clock.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

constexpr std::int64_t kEpoch = 1'700'000'000'000'000'000;  // a foreign clock as CLOCK_REALTIME shows it

/// An anchor of 40 ns width around `session_ns`.
ClockAnchor anchor(std::int64_t foreign_ns, std::int64_t session_ns) {
  return {foreign_ns, {session_ns - 20}, {session_ns + 20}};
}

TEST(Clock, WithoutAnchorsIsTheIdentity) {
  const ClockMap map;
  EXPECT_EQ(map.to_session(123).time.ns, 123);
  EXPECT_TRUE(map.empty());
}

TEST(Clock, ShiftsByTheOffsetOfTheOnlyAnchor) {
  ClockMap map;
  map.add(anchor(kEpoch, 1'000'000));
  EXPECT_EQ(map.to_session(kEpoch - 400'000).time.ns, 600'000);
  EXPECT_EQ(map.to_session(kEpoch + 7).time.ns, 1'000'007);
}

TEST(Clock, SpreadsDriftBetweenTwoAnchors) {
  ClockMap map;
  map.add(anchor(kEpoch, 0));
  map.add(anchor(kEpoch + 200'000'000, 200'010'000));  // the foreign clock is 50 ppm slow
  EXPECT_EQ(map.to_session(kEpoch + 100'000'000).time.ns, 100'005'000);
  EXPECT_EQ(map.to_session(kEpoch + 200'000'000).time.ns, 200'010'000);
  EXPECT_EQ(map.steps(), 0u);
}

TEST(Clock, KeepsTheOrderOfTimesAcrossAnchors) {
  ClockMap map;
  for (std::int64_t i = 0; i < 100; ++i) map.add(anchor(kEpoch + i * 200'000'000, i * 200'000'000 + (i % 3) * 9'000));
  std::int64_t before = map.to_session(kEpoch + 18'000'000'000).time.ns;
  for (std::int64_t foreign = kEpoch + 18'000'000'000; foreign < kEpoch + 20'000'000'000; foreign += 999'983) {
    const std::int64_t time = map.to_session(foreign).time.ns;
    EXPECT_GE(time, before);
    before = time;
  }
}

TEST(Clock, LeavesOutAWideAnchorWhileANarrowOneIsFresh) {
  ClockMap map;
  map.add(anchor(kEpoch, 0));
  map.add({kEpoch + 200'000'000, {200'000'000}, {200'400'000}});  // preempted for 0.4 ms: its middle is 0.2 ms off
  EXPECT_EQ(map.to_session(kEpoch + 200'000'000).time.ns, 200'000'000);
}

TEST(Clock, TellsTheSidesOfAStepForwardApart) {
  ClockMap map;
  constexpr std::int64_t kStep = 3'000'000'000;
  map.add(anchor(kEpoch, 0));
  map.add(anchor(kEpoch + 200'000'000 + kStep, 200'000'000));
  const auto before_step = map.to_session(kEpoch + 50'000'000);
  EXPECT_EQ(before_step.time.ns, 50'000'000);
  EXPECT_TRUE(before_step.certain);
  const auto after_step = map.to_session(kEpoch + kStep + 150'000'000);
  EXPECT_EQ(after_step.time.ns, 150'000'000);
  EXPECT_TRUE(after_step.certain);
  EXPECT_EQ(map.steps(), 1u);
}

TEST(Clock, DoubtsTimesThatAStepBackShowsTwice) {
  ClockMap map;
  constexpr std::int64_t kStep = 100'000'000;
  map.add(anchor(kEpoch, 0));
  map.add(anchor(kEpoch + 200'000'000 - kStep, 200'000'000));
  EXPECT_EQ(map.steps(), 1u);
  EXPECT_FALSE(map.to_session(kEpoch + 50'000'000).certain);
  // Ten seconds later nothing of that time is delivered any more: what is shown is the new clock's.
  for (std::int64_t i = 2; i < 60; ++i) map.add(anchor(kEpoch + i * 200'000'000 - kStep, i * 200'000'000));
  const auto later = map.to_session(kEpoch + 11'500'000'000 - kStep);
  EXPECT_TRUE(later.certain);
  EXPECT_EQ(later.time.ns, 11'500'000'000);
}

// A cycle counter of 2.5 counts a ns, its unit known to 0.02 %.
TEST(Clock, ConvertsCountsThatAreNoNanoseconds) {
  constexpr std::int64_t kCounts = 40'000'000'000'000;
  ClockMap map{ClockUnit{kCounts, 0.4 * 1.0002}};
  map.add(anchor(kCounts, 1'000'000'000));
  map.add(anchor(kCounts + 500'000'000, 1'200'000'000));
  map.add(anchor(kCounts + 1'000'000'000, 1'400'000'000));
  EXPECT_EQ(map.steps(), 0u);
  const auto middle = map.to_session(kCounts + 250'000'000);
  EXPECT_EQ(middle.time.ns, 1'100'000'000);
  EXPECT_TRUE(middle.certain);
  EXPECT_EQ(map.to_session(kCounts + 750'000'000).time.ns, 1'300'000'000);
  EXPECT_EQ(map.to_session(kCounts + 1'000'000'000).time.ns, 1'400'000'000);
}

TEST(Clock, ATimeOfYetAnotherClockOverflowsNothing) {
  ClockMap map{ClockUnit{1'000, 300.0}};
  map.add(anchor(1'000, 0));
  EXPECT_GT(map.to_session(kEpoch).time.ns, 3'000'000'000'000'000'000);
  EXPECT_LT(map.to_session(-kEpoch).time.ns, -3'000'000'000'000'000'000);
}

TEST(Clock, OnceDistrustedNothingIsCertain) {
  ClockMap map;
  map.add(anchor(kEpoch, 0));
  EXPECT_TRUE(map.to_session(kEpoch + 7).certain);
  map.distrust();
  EXPECT_FALSE(map.to_session(kEpoch + 7).certain);
}

}  // namespace
}  // namespace gpudiag
