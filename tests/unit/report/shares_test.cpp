// SPDX-License-Identifier: Apache-2.0
#include "report/shares.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

namespace gpudiag {
namespace {

std::vector<std::int64_t> rounded(std::vector<std::int64_t> parts, std::int64_t total) {
  return round_to_total(parts, total);
}

using Tenths = std::vector<std::int64_t>;

TEST(RoundToTotal, ThreeThirdsAddUpToTheWhole) {
  EXPECT_EQ(rounded({1, 1, 1}, 1000), (Tenths{334, 333, 333}));
}

TEST(RoundToTotal, TheLargestRemainderIsRoundedUp) {
  // 16.66…, 33.33…, 50: the first has the largest remainder.
  EXPECT_EQ(rounded({1, 2, 3}, 100), (Tenths{17, 33, 50}));
}

TEST(RoundToTotal, NothingToDivideGivesZeros) {
  EXPECT_EQ(rounded({0, 0}, 1000), (Tenths{0, 0}));
  EXPECT_EQ(rounded({}, 1000), Tenths{});
}

TEST(RoundToTotal, AZeroPartStaysZero) {
  EXPECT_EQ(rounded({0, 999'999, 1}, 1000), (Tenths{0, 1000, 0}));
}

TEST(RoundToTotal, HundredsOfDaysInNanosecondsDoNotOverflow) {
  const std::int64_t half = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_EQ(rounded({half, half}, 1000), (Tenths{500, 500}));
}

TEST(RoundToTotal, AnyPartsAddUpAndNoneIsOffByAWholeUnit) {
  std::mt19937_64 random{20240611};
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int64_t> parts(1 + random() % 12);
    for (auto& part : parts) part = static_cast<std::int64_t>(random() % 3 == 0 ? 0 : random() % 1'000'000);
    const double sum = static_cast<double>(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}));
    const auto out = round_to_total(parts, 1000);
    if (sum == 0) continue;
    EXPECT_EQ(std::accumulate(out.begin(), out.end(), std::int64_t{0}), 1000);
    for (std::size_t i = 0; i < parts.size(); ++i)
      EXPECT_LT(std::abs(static_cast<double>(out[i]) - 1000.0 * static_cast<double>(parts[i]) / sum), 1.0);
  }
}

TEST(Shares, IdleIsTheSumOfItsCausesAsPrinted) {
  LedgerSum sum;
  sum.iterations = 1;
  sum.wall = DurationNs{3000};
  sum.compute = DurationNs{1000};
  sum.idle = DurationNs{2000};
  sum.idle_by_cause[static_cast<std::size_t>(Cause::kSync)] = DurationNs{1000};
  sum.idle_by_cause[static_cast<std::size_t>(Cause::kHost)] = DurationNs{1000};
  const Shares shares = shares_of(sum);
  EXPECT_EQ(shares.compute, 334);
  EXPECT_EQ(shares.idle, 666);
  EXPECT_EQ(shares.idle_by_cause[static_cast<std::size_t>(Cause::kSync)], 333);
  EXPECT_EQ(shares.idle_by_cause[static_cast<std::size_t>(Cause::kHost)], 333);
}

}  // namespace
}  // namespace gpudiag
