// SPDX-License-Identifier: Apache-2.0
// Records as a live source delivers them: in batches, each behind a tick.
#include "engine_case.hpp"

#include <algorithm>

namespace gpudiag::testing {
namespace {

struct Streaming : EngineCase {
  void two_hundred_iterations() {
    for (int i = 0; i < 200; ++i) {
      const TimePoint at = 0_ms + milliseconds(10 * i);
      run_kernel(at, at + microseconds(8), at + milliseconds(4));
      run_kernel(at + milliseconds(5), at + microseconds(5010), at + milliseconds(9));
      add(mark(at + milliseconds(6), static_cast<std::uint64_t>(i)));
    }
  }
  /// By end, with a tick after each `period`.
  void deliver_live(DurationNs period) {
    std::stable_sort(records.begin(), records.end(),
                     [](const Record& a, const Record& b) { return a.end < b.end; });
    std::vector<Record> live;
    TimePoint next = 0_ns + period;
    for (const Record& record : records) {
      while (record.end >= next) {
        live.push_back(tick(next));
        next += period;
      }
      live.push_back(record);
    }
    records = live;
  }
};

void expect_same(const IterationLedger& a, const IterationLedger& b) {
  EXPECT_EQ(a.index, b.index);
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.wall, b.wall);
  EXPECT_EQ(a.compute, b.compute);
  EXPECT_EQ(a.idle_by_cause, b.idle_by_cause);
  EXPECT_EQ(a.replay_cost, b.replay_cost);
  EXPECT_EQ(a.invalid, b.invalid);
}

TEST_F(Streaming, TicksChangeNoLedger) {
  two_hundred_iterations();
  const auto whole = ledgers();
  deliver_live(milliseconds(200));
  const auto live = ledgers();
  ASSERT_EQ(whole.size(), 200u);
  ASSERT_EQ(live.size(), 200u);
  for (std::size_t i = 0; i < whole.size(); ++i) expect_same(whole[i], live[i]);
}

TEST_F(Streaming, IterationClosesBeforeTheEndOfTheRun) {
  two_hundred_iterations();
  deliver_live(milliseconds(200));
  std::size_t closed = 0;
  Engine engine(options, names, [&](const IterationLedger&) { ++closed; });
  for (const Record& record : records) engine.add(record);
  EXPECT_GE(closed, 170u);
}

TEST_F(Streaming, LongIterationIsTheSumOfItsParts) {
  for (int i = 0; i < 500; ++i) {
    const TimePoint at = 0_ms + milliseconds(10 * i);
    run_kernel(at, at + microseconds(8), at + milliseconds(4));
  }
  add(mark(5000_ms, 0));
  options.window = seconds(100);
  const auto whole = ledgers();
  deliver_live(milliseconds(200));
  options.pending_records_limit = 50;
  const auto parts = ledgers();
  ASSERT_EQ(whole.size(), 1u);
  ASSERT_EQ(parts.size(), 1u);
  expect_same(whole[0], parts[0]);
  EXPECT_EQ(parts[0].operations, 500u);
  EXPECT_EQ(parts[0].launches, 500u);
}

TEST_F(Streaming, MissingOperationIsWaitedForAndThenGivenUp) {
  run_kernel(0_us, 10_us, 100_us);
  add(api(ApiClass::kLaunch, 12_us, 15_us, corr(80)));
  add(mark(20_us, 0));
  std::vector<IterationLedger> closed;
  Engine engine(options, names, [&](const IterationLedger& ledger) { closed.push_back(ledger); });
  for (const Record& record : records) engine.add(record);
  engine.add(tick(9'000_ms));
  EXPECT_TRUE(closed.empty());
  engine.add(tick(10'100_ms));
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(invalid(closed[0], InvalidReason::kMissingRecords), 1u);
}

// In the air while its iteration closes; and the next one has to wait for its kernel.
TEST_F(Streaming, LongCallThatCameWhenItEndedIsNotLateAtAnyLaterTick) {
  two_hundred_iterations();
  add(api(ApiClass::kOther, 1990_ms, 2350_ms, corr(9000), thread(2)));
  run_kernel(2360_ms, 2370_ms, 2900_ms);
  add(mark(2370_ms, 200));
  run_kernel(3100_ms, 3101_ms, 4402_ms);
  deliver_live(milliseconds(100));
  EXPECT_EQ(ledgers().size(), 202u);
  EXPECT_EQ(quality.total(), 0u);
}

TEST_F(Streaming, CallThatComesAfterItsIterationWasClosedIsLateOnce) {
  two_hundred_iterations();
  deliver_live(milliseconds(200));
  const auto middle = records.begin() + static_cast<std::ptrdiff_t>(records.size() / 2);
  records.insert(middle, api(ApiClass::kOther, 100_ms, 101_ms, corr(9000)));
  EXPECT_EQ(ledgers().size(), 200u);
  EXPECT_EQ(quality[Defect::kLate], 1u);
  EXPECT_EQ(quality.total(), 1u);
}

TEST_F(Streaming, OperationThatComesWithALaterTickIsStillInItsIteration) {
  run_kernel(0_us, 10_us, 100_us);
  add(mark(20_us, 0));
  const Record late = records[1];
  std::vector<IterationLedger> closed;
  Engine engine(options, names, [&](const IterationLedger& ledger) { closed.push_back(ledger); });
  engine.add(records[0]);
  engine.add(records[2]);
  engine.add(tick(50_us));
  EXPECT_TRUE(closed.empty());
  engine.add(late);
  engine.add(tick(200_us));
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_TRUE(closed[0].valid());
  EXPECT_EQ(closed[0].wall, microseconds(90));
}

}  // namespace
}  // namespace gpudiag::testing
