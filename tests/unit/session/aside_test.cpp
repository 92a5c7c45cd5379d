// SPDX-License-Identifier: Apache-2.0
#include "session/aside.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

constexpr TimePoint at_ms(std::int64_t ms) { return {ms * 1'000'000}; }

TEST(Aside, ItsTimeIsToldInPiecesThatLeaveNothingOut) {
  Aside aside;
  EXPECT_TRUE(aside.take_piece(at_ms(50)).empty());
  aside.begin(at_ms(100), "torch.profiler", true);
  EXPECT_EQ(aside.take_piece(at_ms(300)), (Interval{at_ms(100), at_ms(300)}));
  EXPECT_TRUE(aside.take_piece(at_ms(300)).empty());
  EXPECT_EQ(aside.take_piece(at_ms(450)), (Interval{at_ms(300), at_ms(450)}));
  EXPECT_EQ(aside.end(at_ms(450)), milliseconds(350));
  EXPECT_TRUE(aside.take_piece(at_ms(500)).empty());
}

TEST(Aside, TimesAndTheirSumAreCounted) {
  Aside aside;
  aside.begin(at_ms(100), "a", true);
  aside.end(at_ms(150));
  aside.begin(at_ms(200), "b", true);
  EXPECT_EQ(aside.total(at_ms(230)), milliseconds(80));
  aside.end(at_ms(300));
  EXPECT_EQ(aside.times(), 2u);
  EXPECT_EQ(aside.total(at_ms(1000)), milliseconds(150));
}

TEST(Aside, AskedForInTheMiddleItGoesOnUnderTheNewName) {
  Aside aside;
  aside.begin(at_ms(100), "", false);
  EXPECT_EQ(aside.who(), "another profiler");
  EXPECT_FALSE(aside.asked_for());
  aside.begin(at_ms(200), "torch.profiler", true);
  EXPECT_TRUE(aside.asked_for());
  EXPECT_EQ(aside.end(at_ms(300)), milliseconds(200));
  EXPECT_EQ(aside.times(), 1u);
}

TEST(Aside, TheLineNamesTheOtherOneAndTheTime) {
  EXPECT_EQ(say_stood_aside("torch.profiler", milliseconds(1240)),
            "stood aside for torch.profiler for 1.24 s: the iterations of that time have no ledger");
}

/// Ten records at 0 ms, then `marks` of the job and none more.
TakeoverWatch silent_since_0(int marks) {
  TakeoverWatch watch;
  watch.update(at_ms(0), 10);
  for (int i = 0; i < marks; ++i) watch.mark();
  return watch;
}

TEST(Takeover, AJobThatGoesOnForThreeSecondsWithoutARecordHasLostThem) {
  TakeoverWatch watch = silent_since_0(10);
  EXPECT_FALSE(watch.update(at_ms(2999), 10));
  EXPECT_TRUE(watch.update(at_ms(3000), 10));
  EXPECT_FALSE(watch.update(at_ms(3200), 10)) << "said twice";
}

TEST(Takeover, AJobThatRestsHasNot) {
  TakeoverWatch watch = silent_since_0(9);
  EXPECT_FALSE(watch.update(at_ms(60'000), 10));
}

TEST(Takeover, AnExchangedClockSpeaksForItThoughTheJobMarksNothing) {
  TakeoverWatch watch = silent_since_0(0);
  watch.clock_exchanged();
  EXPECT_FALSE(watch.update(at_ms(2000), 10));
  EXPECT_TRUE(watch.update(at_ms(3000), 10));
}

// Its last buffers come while the other one has the clock already.
TEST(Takeover, AFewDeliveriesDoNotSpeakAgainstAnExchangedClockAndManyDo) {
  TakeoverWatch watch = silent_since_0(0);
  watch.clock_exchanged();
  EXPECT_FALSE(watch.update(at_ms(200), 20));
  EXPECT_FALSE(watch.update(at_ms(400), 30));
  EXPECT_TRUE(watch.update(at_ms(3400), 30));
  watch.clock_exchanged();
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(watch.update(at_ms(4000 + 200 * i), 40u + static_cast<unsigned>(i)));
  EXPECT_FALSE(watch.update(at_ms(60'000), 45));
}

TEST(Takeover, ARecordStartsTheWatchAnew) {
  TakeoverWatch watch = silent_since_0(10);
  EXPECT_FALSE(watch.update(at_ms(2900), 11));
  EXPECT_FALSE(watch.update(at_ms(3500), 11));
  EXPECT_EQ(watch.trusted_until(), kTimeMax);
}

TEST(Takeover, AJobOfWhichNothingWasEverRecordedHasLostNothing) {
  TakeoverWatch watch;
  watch.update(at_ms(1), 0);
  for (int i = 0; i < 100; ++i) watch.mark();
  EXPECT_FALSE(watch.update(at_ms(60'000), 0));
  EXPECT_EQ(watch.trusted_until(), kTimeMax);
}

// Otherwise iterations whose records go elsewhere would be closed as good ones that launched nothing.
TEST(Takeover, WhileItGoesOnWithoutRecordsNothingSinceTheLastOneIsTrusted) {
  EXPECT_EQ(silent_since_0(2).trusted_until(), kTimeMax);
  EXPECT_EQ(silent_since_0(3).trusted_until(), at_ms(0));
  TakeoverWatch watch = silent_since_0(0);
  watch.clock_exchanged();
  EXPECT_EQ(watch.trusted_until(), at_ms(0));
}

}  // namespace
}  // namespace gpudiag
