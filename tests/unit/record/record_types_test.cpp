// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "record/names.hpp"
#include "record/record.hpp"

namespace gpudiag {
namespace {

TEST(Interval, IsHalfOpen) {
  const Interval interval{{10}, {20}};
  EXPECT_TRUE(interval.contains({10}));
  EXPECT_FALSE(interval.contains({20}));
  EXPECT_EQ(interval.length(), DurationNs{10});
}

TEST(Interval, ThatEndsBeforeItStartsIsEmptyAndHasNoLength) {
  const Interval interval{{20}, {10}};
  EXPECT_TRUE(interval.empty());
  EXPECT_EQ(interval.length(), DurationNs{});
}

TEST(Interval, IsClippedToWhatBothShare) {
  const Interval interval{{10}, {20}};
  EXPECT_EQ(interval.clipped_to({{15}, {30}}), (Interval{{15}, {20}}));
  EXPECT_TRUE(interval.clipped_to({{20}, {30}}).empty());
}

TEST(NameTable, GivesTheSameTextTheSameId) {
  NameTable names;
  const NameId first = names.intern("aten::mm");
  EXPECT_EQ(names.intern(std::string("aten::") + "mm"), first);
  EXPECT_NE(names.intern("aten::bmm"), first);
  EXPECT_EQ(names.text(first), "aten::mm");
}

TEST(NameTable, KnowsNoTextForAnIdItNeverGave) {
  const NameTable names;
  EXPECT_EQ(names.text(NameId{4711}), "");
  EXPECT_EQ(names.text(kNoName), "");
}

TEST(NameTable, KeepsViewsWhileItGrows) {
  NameTable names;
  const auto first = names.text(names.intern("first"));
  for (int i = 0; i < 10'000; ++i) names.intern("name " + std::to_string(i));
  EXPECT_EQ(first, "first");
}

TEST(Record, TellsOperationsFromTheRest) {
  Record record;
  for (const auto kind : {RecordKind::kKernel, RecordKind::kMemcpy, RecordKind::kMemset, RecordKind::kGraph}) {
    record.kind = kind;
    EXPECT_TRUE(record.is_operation());
  }
  for (const auto kind : {RecordKind::kApiCall, RecordKind::kSync, RecordKind::kRange, RecordKind::kMark}) {
    record.kind = kind;
    EXPECT_FALSE(record.is_operation());
  }
}

}  // namespace
}  // namespace gpudiag
