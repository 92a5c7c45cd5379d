// SPDX-License-Identifier: Apache-2.0
#include "timeline/loops.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gpudiag {
namespace {

std::vector<Boundary> boundaries_of(Loop& loop) {
  std::vector<Boundary> found;
  loop.prepare();
  for (; loop.next() != nullptr; loop.take()) found.push_back(*loop.next());
  return found;
}

TEST(Loop, MarksAreTakenInOrderOfTime) {
  Loop loop(MarkSource::kStep, 0);
  loop.add_mark({300}, kNoName, 3);
  loop.add_mark({100}, kNoName, 1);
  loop.add_mark({200}, kNoName, 2);
  const auto found = boundaries_of(loop);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].index, 1u);
  EXPECT_EQ(found[1].index, 2u);
  EXPECT_EQ(found[2].index, 3u);
}

TEST(Loop, RangeEndsItsIterationAndOnlyTheFirstOpensOne) {
  Loop loop(MarkSource::kProfilerStep, 0);
  loop.add_range({{250}, {400}}, kNoName, 8);
  loop.add_range({{100}, {200}}, kNoName, 7);
  const auto found = boundaries_of(loop);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found[0].opening);
  EXPECT_EQ(found[0].at, TimePoint{100});
  EXPECT_EQ(found[1].at, TimePoint{200});
  EXPECT_EQ(found[1].index, 7u);
  EXPECT_EQ(found[2].at, TimePoint{400});
}

TEST(Loop, LaterRangesDoNotOpenAgainAfterBoundariesWereTaken) {
  Loop loop(MarkSource::kProfilerStep, 0);
  loop.add_range({{100}, {200}}, kNoName, 7);
  EXPECT_EQ(boundaries_of(loop).size(), 2u);
  loop.compact();
  loop.add_range({{250}, {400}}, kNoName, 8);
  const auto found = boundaries_of(loop);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at, TimePoint{400});
}

TEST(Loop, ExplicitStepIsTrustedMoreThanAProfilersAndThatMoreThanAPattern) {
  const Loop step(MarkSource::kStep, 0), profiler(MarkSource::kProfilerStep, 0),
      pattern(MarkSource::kPattern, 0);
  EXPECT_TRUE(more_trusted(step, profiler));
  EXPECT_TRUE(more_trusted(profiler, pattern));
  EXPECT_FALSE(more_trusted(pattern, step));
}

TEST(Loop, OfEqualTrustTheOneThatBeganFirstWins) {
  Loop late(MarkSource::kStep, 0), early(MarkSource::kStep, 1);
  late.add_mark({200}, kNoName, 0);
  early.add_mark({100}, kNoName, 0);
  EXPECT_TRUE(more_trusted(early, late));
}

}  // namespace
}  // namespace gpudiag
