// SPDX-License-Identifier: Apache-2.0
#include "report/text_line.hpp"

#include <gtest/gtest.h>

#include "ledgers.hpp"

namespace gpudiag {
namespace {

using test::evidence;
using test::ledger;

constexpr LineHead kRank3{3, DeviceId{0}, false};

IterationLedger example() {
  IterationLedger made = ledger(1841, 252'511'200,
                                {{Cause::kHost, 1'650'400},
                                 {Cause::kDataLoading, 99'436'600},
                                 {Cause::kSync, 16'091'400},
                                 {Cause::kLaunchOverhead, 4'951'200},
                                 {Cause::kUnknown, 825'200}});
  made.communication = DurationNs{34'658'400};
  made.copy = DurationNs{2'475'600};
  made.wall += made.communication + made.copy;
  made.evidence.push_back(
      evidence(Cause::kDataLoading, SubCause::kTooFewWorkers, "DataLoader.__next__", 99'436'600));
  made.evidence.push_back(evidence(Cause::kSync, SubCause::kItem, "aten::item", 16'091'400));
  return made;
}

TEST(TextLine, SaysWhereTheTimeWentAsInTheDesign) {
  EXPECT_EQ(format_line(kRank3, example()),
            "gpudiag rank 3 iter 1841  412.6 ms | compute 61.2% comm 8.4% copy 0.6% | idle 29.8%: "
            "data_loading 24.1 (too_few_workers) sync 3.9 launch 1.2 host 0.4 unknown 0.2");
}

TEST(TextLine, ABusyDeviceHasNoListOfCauses) {
  EXPECT_EQ(format_line(kRank3, ledger(2, 5'000'000)),
            "gpudiag rank 3 iter 2  5.0 ms | compute 100.0% comm 0.0% copy 0.0% | idle 0.0%");
}

TEST(TextLine, UnknownIsShownHoweverSmall) {
  EXPECT_EQ(format_line(kRank3, ledger(2, 5'000'000, {{Cause::kUnknown, 1}, {Cause::kHost, 1}})),
            "gpudiag rank 3 iter 2  5.0 ms | compute 100.0% comm 0.0% copy 0.0% | idle 0.0%: "
            "unknown 0.0");
}

TEST(TextLine, UnknownComesLastHoweverLarge) {
  EXPECT_EQ(format_line(kRank3, ledger(2, 500'000, {{Cause::kUnknown, 400'000},
                                                    {Cause::kCommunicationWait, 100'000}})),
            "gpudiag rank 3 iter 2  1.0 ms | compute 50.0% comm 0.0% copy 0.0% | idle 50.0%: "
            "comm_wait 10.0 unknown 40.0");
}

TEST(TextLine, NamesTheDeviceWhenARankDrivesSeveral) {
  EXPECT_EQ(format_line({0, DeviceId{1}, true}, ledger(7, 1'000'000)),
            "gpudiag rank 0 dev 1 iter 7  1.0 ms | compute 100.0% comm 0.0% copy 0.0% | idle 0.0%");
}

TEST(TextLine, ARangeIsTheSumOfItsIterationsWithTheirMeanTime) {
  IterationRange range;
  for (std::uint64_t i = 900; i <= 1012; ++i)
    range.add(ledger(i, 6'075'000, {{Cause::kSync, 2'025'000}}));
  EXPECT_EQ(format_line({0, DeviceId{1}, true}, range),
            "gpudiag rank 0 dev 1 iter 900-1012  8.1 ms ×113 | compute 75.0% comm 0.0% copy 0.0% | "
            "idle 25.0%: sync 25.0");
}

TEST(TextLine, APartialIterationIsSaidToBeOne) {
  IterationLedger cut = ledger(0, 1'000'000);
  cut.partial = true;
  EXPECT_EQ(format_line(kRank3, cut),
            "gpudiag rank 3 iter 0  1.0 ms | compute 100.0% comm 0.0% copy 0.0% | idle 0.0% | partial");
}

TEST(TextLine, AnInvalidIterationHasReasonsInPlaceOfShares) {
  IterationLedger bad = ledger(4, 1'000'000);
  bad.invalid[static_cast<std::size_t>(InvalidReason::kUntimed)] = 12;
  bad.invalid[static_cast<std::size_t>(InvalidReason::kDropped)] = 3;
  EXPECT_EQ(format_line(kRank3, bad), "gpudiag rank 3 iter 4 | invalid: untimed 12, dropped 3");
}

TEST(TextLine, ARangeCountsItsInvalidIterationsAndLeavesThemOutOfTheSum) {
  IterationRange range;
  range.add(ledger(4, 1'000'000));
  IterationLedger bad = ledger(5, 900'000'000);
  bad.invalid[static_cast<std::size_t>(InvalidReason::kMissingRecords)] = 2;
  range.add(bad);
  range.add(ledger(6, 3'000'000));
  EXPECT_EQ(format_line(kRank3, range),
            "gpudiag rank 3 iter 4-6  2.0 ms ×2 | compute 100.0% comm 0.0% copy 0.0% | idle 0.0% | "
            "1 invalid: missing_records 2");
}

TEST(TextLine, ALossThatLiesInSeveralIterationsIsToldOfOnce) {
  constexpr auto kDropped = static_cast<std::size_t>(InvalidReason::kDropped);
  IterationRange range;
  for (std::uint64_t i = 4; i < 7; ++i) {
    IterationLedger bad = ledger(i, 1'000'000);
    bad.invalid[kDropped] = 30;
    bad.counted_before[kDropped] = i == 4 ? 0 : 30;
    range.add(bad);
  }
  IterationLedger another = ledger(7, 1'000'000);
  another.invalid[kDropped] = 35;
  another.counted_before[kDropped] = 30;
  range.add(another);
  EXPECT_EQ(format_line(kRank3, range), "gpudiag rank 3 iter 4-7 | 4 invalid: dropped 35");
}

TEST(TextLine, AnIterationWithoutOperationsHasNoShares) {
  IterationLedger none = ledger(9, 0);
  none.empty = true;
  EXPECT_EQ(format_line(kRank3, none), "gpudiag rank 3 iter 9  0.0 ms | empty");
}

TEST(TextLine, TimesHaveTheUnitThatReadsBest) {
  EXPECT_EQ(format_time(DurationNs{850'000}), "850.0 us");
  EXPECT_EQ(format_time(DurationNs{1'000'000}), "1.0 ms");
  EXPECT_EQ(format_time(DurationNs{9'999'000'000}), "9999.0 ms");
  EXPECT_EQ(format_time(DurationNs{14'522'910'000}), "14.5 s");
  EXPECT_EQ(format_time(DurationNs{0}), "0.0 ms");
}

}  // namespace
}  // namespace gpudiag
