// SPDX-License-Identifier: Apache-2.0
#include "timeline/labels.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

LabelledRange owner(std::int64_t start, std::int64_t end, Cause cause,
                    SubCause sub_cause = SubCause::kNone) {
  return {{start}, {end}, kNoName,
          {RangeMeaning::kOwner, cause, sub_cause, BatchMode::kInline, MarkSource::kPattern}};
}

LabelledRange weak(std::int64_t start, std::int64_t end, NameId name) {
  return {{start}, {end}, name,
          {RangeMeaning::kWeak, Cause::kSync, SubCause::kItem, BatchMode::kInline,
           MarkSource::kPattern}};
}

const Segment* owner_at(const ThreadLabels& labels, std::int64_t t) {
  return ThreadLabels::at(labels.owners(), {t});
}

TEST(ThreadLabels, OutermostRangeOwnsWhatIsInside) {
  ThreadLabels labels;
  labels.add(owner(20, 40, Cause::kDataLoading));
  labels.add(owner(10, 100, Cause::kCheckpoint));
  labels.prepare();
  ASSERT_EQ(labels.owners().size(), 1u);
  EXPECT_EQ(labels.owners()[0].label.cause, Cause::kCheckpoint);
  EXPECT_EQ(labels.owners()[0].start, TimePoint{10});
  EXPECT_EQ(labels.owners()[0].end, TimePoint{100});
}

TEST(ThreadLabels, GarbageCollectionIsItselfWhereverItHappens) {
  ThreadLabels labels;
  labels.add(owner(10, 100, Cause::kDataLoading));
  labels.add(owner(30, 50, Cause::kHost, SubCause::kGarbageCollection));
  labels.prepare();
  EXPECT_EQ(owner_at(labels, 29)->label.cause, Cause::kDataLoading);
  EXPECT_EQ(owner_at(labels, 30)->label.sub_cause, SubCause::kGarbageCollection);
  EXPECT_EQ(owner_at(labels, 49)->label.sub_cause, SubCause::kGarbageCollection);
  EXPECT_EQ(owner_at(labels, 50)->label.cause, Cause::kDataLoading);
  EXPECT_EQ(owner_at(labels, 100), nullptr);
}

TEST(ThreadLabels, InnermostOfWeakRangesWins) {
  ThreadLabels labels;
  labels.add(weak(10, 100, NameId{1}));
  labels.add(weak(30, 50, NameId{2}));
  labels.prepare();
  EXPECT_EQ(ThreadLabels::at(labels.weak(), {20})->name, NameId{1});
  EXPECT_EQ(ThreadLabels::at(labels.weak(), {40})->name, NameId{2});
  EXPECT_EQ(ThreadLabels::at(labels.weak(), {60})->name, NameId{1});
}

TEST(ThreadLabels, OverlapWithoutNestingStaysWithTheEarlierRange) {
  ThreadLabels labels;
  labels.add(owner(30, 80, Cause::kCheckpoint));
  labels.add(owner(10, 50, Cause::kDataLoading));
  labels.prepare();
  ASSERT_EQ(labels.owners().size(), 2u);
  EXPECT_EQ(labels.owners()[0].end, TimePoint{50});
  EXPECT_EQ(labels.owners()[1].start, TimePoint{50});
  EXPECT_EQ(labels.owners()[1].range_start, TimePoint{30});
}

TEST(ThreadLabels, ForgetsOnlyWhatEnded) {
  ThreadLabels labels;
  labels.add(owner(10, 50, Cause::kDataLoading));
  labels.add(owner(60, 90, Cause::kCheckpoint));
  labels.prepare();
  labels.forget_before({50});
  labels.prepare();
  EXPECT_EQ(owner_at(labels, 20), nullptr);
  EXPECT_EQ(owner_at(labels, 70)->label.cause, Cause::kCheckpoint);
}

}  // namespace
}  // namespace gpudiag
