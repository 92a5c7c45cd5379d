// SPDX-License-Identifier: Apache-2.0
// Calls whose operations come long after them: far back in the queue, or nodes of a graph that runs.
#include <algorithm>

#include "engine_case.hpp"

namespace gpudiag::testing {
namespace {

struct Unfinished : EngineCase {
  /// As a live run hands them over: by their ends, with a tick each 200 ms.
  void deliver_live(TimePoint until) {
    std::stable_sort(records.begin(), records.end(),
                     [](const Record& a, const Record& b) { return a.end < b.end; });
    std::vector<Record> live;
    TimePoint next = 200_ms;
    for (const Record& record : records) {
      for (; next <= record.end; next += milliseconds(200)) live.push_back(tick(next));
      live.push_back(record);
    }
    for (; next <= until; next += milliseconds(200)) live.push_back(tick(next));
    records = std::move(live);
  }
  void copy_call(TimePoint at, CorrelationId id) {
    add(api(ApiClass::kMemcpyAsync, at, at + microseconds(5), id));
  }
};

TEST_F(Unfinished, CopyFarBackInTheQueueIsWaitedForWhileTheDeviceWorks) {
  for (int i = 0; i < 30; ++i)
    run_kernel(0_ms + milliseconds(i), 1_ms + milliseconds(100 * i), 101_ms + milliseconds(100 * i));
  copy_call(40_ms, corr(500));
  add(memcpy_of(CopyKind::kDeviceToDevice, 64, stream(7), 3001_ms, 3101_ms, corr(500)));
  add(mark(50_ms, 0));
  run_kernel(60_ms, 3101_ms, 3201_ms);
  add(mark(70_ms, 1));
  deliver_live(3600_ms);
  const auto all = ledgers();
  EXPECT_EQ(quality.total(), 0u);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].copy, milliseconds(100));
  EXPECT_EQ(all[0].wall, milliseconds(3100));
  EXPECT_TRUE(all[0].valid());
}

TEST_F(Unfinished, CopyThatMovesNothingHoldsNothingUpOnceTheDeviceIsIdle) {
  run_kernel(0_ms, 1_ms, 2_ms);
  copy_call(3_ms, corr(500));
  add(mark(4_ms, 0));
  std::vector<IterationLedger> closed;
  Engine engine(options, names, [&](const IterationLedger& ledger) { closed.push_back(ledger); });
  for (const Record& record : records) engine.add(record);
  engine.add(tick(900_ms));
  EXPECT_TRUE(closed.empty());
  engine.add(tick(1100_ms));
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_TRUE(closed[0].valid());
}

// A second is over while a graph of half a second runs: its other nodes are no orphans.
TEST_F(Unfinished, NodesThatComeAfterTheirWindowWasClosedAreNoDefect) {
  run_kernel(0_ms, 1_ms, 2_ms);
  const CorrelationId id = corr(500);
  add(api(ApiClass::kGraphLaunch, 800_ms, 801_ms, id));
  for (int node = 0; node < 500; ++node)
    add(kernel(stream(7), 802_ms + milliseconds(node), 803_ms + milliseconds(node), id));
  deliver_live(2000_ms);
  const auto all = ledgers();
  EXPECT_EQ(quality[Defect::kOrphan], 0u);
  DurationNs compute;
  for (const IterationLedger& ledger : all) compute += ledger.compute;
  EXPECT_EQ(compute, milliseconds(501));
}

}  // namespace
}  // namespace gpudiag::testing
