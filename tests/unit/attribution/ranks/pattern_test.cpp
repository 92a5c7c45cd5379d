// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "attribution/ranks/late_cells.hpp"

namespace gpudiag {
namespace {

using Late = std::vector<std::size_t>;

TEST(Pattern, MostIterationsArePersistent) {
  EXPECT_EQ(pattern_of({1, 2, 3, 5, 6, 7, 8}, 10).pattern, LatePattern::kPersistent);
  EXPECT_EQ(pattern_of({12, 13, 14, 15, 16, 17, 18, 19}, 20).pattern, LatePattern::kPersistent);
}

TEST(Pattern, ABeatIsPeriodicAlsoWhereOneComesAnIterationLater) {
  EXPECT_EQ(pattern_of({2, 6, 10, 14, 18}, 20).pattern, LatePattern::kPeriodic);
  EXPECT_EQ(pattern_of({2, 6, 10, 14, 18}, 20).period, 4u);
  EXPECT_EQ(pattern_of({2, 7, 10, 14, 19}, 20).pattern, LatePattern::kPeriodic);
  EXPECT_EQ(pattern_of({1, 3, 5, 7, 9, 11}, 20).period, 2u);
}

TEST(Pattern, NowAndThenIsNoBeat) {
  EXPECT_EQ(pattern_of({2, 3, 11}, 20).pattern, LatePattern::kSporadic);
  EXPECT_EQ(pattern_of({0, 1, 2, 9, 10, 17, 18}, 40).pattern, LatePattern::kSporadic);
  EXPECT_EQ(pattern_of({4, 9}, 20).pattern, LatePattern::kSporadic);
  EXPECT_EQ(pattern_of({}, 20).pattern, LatePattern::kSporadic);
}

}  // namespace
}  // namespace gpudiag
