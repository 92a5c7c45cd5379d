// SPDX-License-Identifier: Apache-2.0
#include "attribution/steady.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "unit/report/ledgers.hpp"

namespace gpudiag {
namespace {

std::size_t warm_up(std::vector<std::int64_t> walls) { return warm_up_length(walls); }

TEST(WarmUp, AnEvenRunHasNone) { EXPECT_EQ(warm_up({100, 101, 99, 100}), 0u); }

TEST(WarmUp, EndsBeforeTheFirstThreeThatStayNearTheLaterMedian) {
  EXPECT_EQ(warm_up({900, 300, 130, 101, 99, 100, 102, 100}), 3u);
}

TEST(WarmUp, TwoInARowAreNotEnough) { EXPECT_EQ(warm_up({100, 100, 500, 100, 100, 100}), 3u); }

TEST(WarmUp, TwentyPercentIsStillNear) {
  EXPECT_EQ(warm_up({120, 100, 80, 100, 100}), 0u);
  EXPECT_EQ(warm_up({121, 100, 80, 100, 100}), 1u);
}

TEST(WarmUp, ALoopThatNeverSettlesIsNoneForThatIsItsPace) {
  EXPECT_EQ(warm_up({22, 2000, 22, 2000, 22, 2000}), 0u);
  EXPECT_EQ(warm_up({9000, 7000, 22, 2000, 22, 2000, 22, 2000, 22, 2000}), 2u);
}

TEST(WarmUp, OfAnUnevenJobLittleIsLost) {
  std::mt19937 random{11};
  for (int round = 0; round < 50; ++round) {
    std::vector<std::int64_t> walls{4000, 1500};
    for (int i = 0; i < 88; ++i) walls.push_back(60 + static_cast<std::int64_t>(random() % 90));
    EXPECT_GE(warm_up_length(walls), 2u);
    EXPECT_LE(warm_up_length(walls), 20u);
  }
}

TEST(WarmUp, FewerThanThreeAreAllWarmUp) {
  EXPECT_EQ(warm_up({}), 0u);
  EXPECT_EQ(warm_up({100, 100}), 2u);
}

TEST(WarmUp, ALateSpikeDoesNotBringItBack) {
  EXPECT_EQ(warm_up({100, 100, 100, 100, 5000, 100, 100}), 0u);
}

TEST(WarmUp, AgreesWithThePlainReadingOfTheRule) {
  std::mt19937 random{3};
  for (int round = 0; round < 500; ++round) {
    std::vector<std::int64_t> walls(random() % 12);
    for (auto& wall : walls) wall = 80 + static_cast<std::int64_t>(random() % 80);
    std::size_t expected = walls.size();
    std::int64_t scatter = 0;
    if (walls.size() >= 6) {
      std::vector<std::int64_t> half(walls.begin() + static_cast<std::ptrdiff_t>(walls.size() / 2), walls.end());
      std::sort(half.begin(), half.end());
      const std::int64_t middle = half[half.size() / 2];
      for (auto& wall : half) wall = std::abs(wall - middle);
      std::sort(half.begin(), half.end());
      scatter = half[half.size() * 3 / 4];
    }
    for (std::size_t i = 0; i + 3 <= walls.size() && expected == walls.size(); ++i) {
      std::vector<std::int64_t> later(walls.begin() + static_cast<std::ptrdiff_t>(i), walls.end());
      std::sort(later.begin(), later.end());
      const std::int64_t median = later[later.size() / 2];
      bool near = true;
      for (std::size_t j = i; j < i + 3; ++j)
        near = near && (std::abs(walls[j] - median) * 5 <= median || std::abs(walls[j] - median) <= scatter);
      if (near) expected = i;
    }
    EXPECT_EQ(warm_up_length(walls), expected);
  }
}

TEST(CompleteTraining, LeavesOutWhatIsCutInvalidEmptyOrEvaluation) {
  const IterationLedger good = test::ledger(1, 100);
  EXPECT_TRUE(is_complete_training(good));
  IterationLedger other = good;
  other.partial = true;
  EXPECT_FALSE(is_complete_training(other));
  other = good;
  other.invalid[0] = 1;
  EXPECT_FALSE(is_complete_training(other));
  other = good;
  other.empty = true;
  EXPECT_FALSE(is_complete_training(other));
  other = good;
  other.phase = Phase::kEvaluation;
  EXPECT_FALSE(is_complete_training(other));
}

}  // namespace
}  // namespace gpudiag
