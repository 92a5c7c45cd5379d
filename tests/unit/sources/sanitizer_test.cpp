// SPDX-License-Identifier: Apache-2.0
#include "sources/sanitizer.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/records.hpp"

namespace gpudiag {
namespace {

using namespace testing;
using namespace record_flag;

struct Kept final : RecordSink {
  std::vector<Record> records;
  void add(const Record& record) override { records.push_back(record); }
};

constexpr Interval kSession{TimePoint{0}, TimePoint{10'000'000'000}};

/// What becomes of one record, and what is counted.
struct Outcome {
  Record record;
  Quality seen;
};

Outcome sanitize(const Record& record) {
  Kept kept;
  Sanitizer sanitizer{kept};
  sanitizer.set_session(kSession);
  sanitizer.add(record);
  EXPECT_EQ(kept.records.size(), 1u);
  return {kept.records.at(0), sanitizer.seen()};
}

TEST(Sanitizer, PassesGoodRecordsUnchanged) {
  const Record record = kernel(stream(7), 10_us, 20_us, corr(1));
  const auto [passed, seen] = sanitize(record);
  EXPECT_EQ(passed, record);
  EXPECT_EQ(seen.records, 1u);
  EXPECT_EQ(seen.total(), 0u);
}

TEST(Sanitizer, MarksEndBeforeStartAndClampsIt) {
  const auto [by_one, seen] = sanitize(kernel(stream(7), 20_us, TimePoint{19'999}, corr(1)));
  EXPECT_TRUE(by_one.has(kNegative));
  EXPECT_EQ(by_one.end, by_one.start);
  EXPECT_EQ(seen[Defect::kNegative], 1u);
  EXPECT_EQ(seen.total(), 1u);
}

TEST(Sanitizer, KeepsAnInstant) {
  const auto [passed, seen] = sanitize(kernel(stream(7), 20_us, 20_us, corr(1)));
  EXPECT_EQ(passed.flags, 0);
  EXPECT_EQ(seen.total(), 0u);
}

TEST(Sanitizer, MarksForeignClocksAndBringsThemIntoTheSession) {
  const auto [late, seen] =
      sanitize(kernel(stream(7), TimePoint{20'000'000'000}, kTimeMax, corr(1)));
  EXPECT_TRUE(late.has(kForeignClock));
  EXPECT_EQ(late.start, kSession.end);
  EXPECT_EQ(late.end, kSession.end);
  EXPECT_EQ(seen[Defect::kForeignClock], 1u);
  EXPECT_TRUE(sanitize(kernel(stream(7), TimePoint{-1}, 20_us, corr(1))).record.has(kForeignClock));
  EXPECT_TRUE(sanitize(kernel(stream(7), 5_us, TimePoint{10'000'000'001}, corr(1)))
                  .record.has(kForeignClock));
}

TEST(Sanitizer, CountsWhatTheSourceMarked) {
  Record untimed = kernel(stream(7), TimePoint{0}, TimePoint{0}, corr(1));
  untimed.flags = kUntimed;
  EXPECT_EQ(sanitize(untimed).seen[Defect::kUntimed], 1u);
  Record incomplete = api(ApiClass::kLaunch, 5_us, TimePoint{0}, corr(1));
  incomplete.flags = kIncomplete;
  const auto [passed, seen] = sanitize(incomplete);
  EXPECT_EQ(seen[Defect::kIncomplete], 1u);
  EXPECT_EQ(seen[Defect::kNegative], 0u)
      << "an end that was never recorded is not before the start";
  EXPECT_EQ(passed.end, passed.start);
}

TEST(Sanitizer, WithoutASessionNothingIsForeign) {
  Kept kept;
  Sanitizer sanitizer{kept};
  sanitizer.add(kernel(stream(7), TimePoint{-1'000'000'000'000}, kTimeMax, corr(1)));
  EXPECT_EQ(kept.records.at(0).flags, 0);
}

TEST(Sanitizer, LetsTicksAndLossesPassUnjudged) {
  Kept kept;
  Sanitizer sanitizer{kept};
  sanitizer.set_session(kSession);
  sanitizer.add(tick(kTimeMax));
  sanitizer.add(span(RecordKind::kLost, kTimeMin, kTimeMin));
  sanitizer.add(span(RecordKind::kGap, kTimeMin, kTimeMax));
  EXPECT_EQ(kept.records.size(), 3u);
  EXPECT_EQ(sanitizer.seen().records, 0u);
}

}  // namespace
}  // namespace gpudiag
