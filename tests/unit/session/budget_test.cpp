// SPDX-License-Identifier: Apache-2.0
#include "session/budget.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

using Step = Budget::Step;

TEST(Budget, ShedsNothingBelowIt) {
  Budget budget{2.0, 4};
  for (std::int64_t s = 0; s <= 60; s += 5)
    EXPECT_EQ(budget.update(TimePoint{} + seconds(s), {s * 19'000'000}, {}), Step::kNone);
  EXPECT_DOUBLE_EQ(budget.last_share(), 0.019);
}

TEST(Budget, TakesAStepAfterTwoWindowsAboveIt) {
  Budget budget{2.0, 4};
  const auto at = [&](std::int64_t s) { return budget.update(TimePoint{} + seconds(s), {s * 21'000'000}, {}); };
  EXPECT_EQ(at(0), Step::kNone);
  EXPECT_EQ(at(5), Step::kNone);
  EXPECT_EQ(at(10), Step::kDropDriverCalls);
  EXPECT_EQ(at(15), Step::kNone);
  EXPECT_EQ(at(20), Step::kDropRanges);
  EXPECT_EQ(at(30), Step::kNone);
  EXPECT_EQ(at(35), Step::kNothingLeft);
  EXPECT_EQ(at(45), Step::kNone);
  EXPECT_EQ(at(55), Step::kNone);
}

TEST(Budget, ForgivesASingleWindowAboveIt) {
  Budget budget{2.0, 4};
  budget.update(TimePoint{}, {}, {});
  EXPECT_EQ(budget.update(TimePoint{} + seconds(5), milliseconds(500), {}), Step::kNone);
  EXPECT_EQ(budget.update(TimePoint{} + seconds(10), milliseconds(510), {}), Step::kNone);
  EXPECT_EQ(budget.update(TimePoint{} + seconds(15), milliseconds(1010), {}), Step::kNone);
}

TEST(Budget, DividesTheDrainThreadsTimeAmongProcessors) {
  Budget budget{2.0, 4};
  budget.update(TimePoint{}, {}, {});
  budget.update(TimePoint{} + seconds(10), {}, milliseconds(400));
  EXPECT_DOUBLE_EQ(budget.last_share(), 0.01);
}

}  // namespace
}  // namespace gpudiag
