// SPDX-License-Identifier: Apache-2.0
#include "attribution/window_sweep.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

using enum OperationClass;

TEST(WindowSweep, ComputeHidesCommunicationAndThatHidesCopies) {
  WindowSweep sweep({{0}, {100}});
  sweep.begin(kCopy, {0}, {90});
  sweep.begin(kCommunication, {10}, {60});
  sweep.begin(kCompute, {20}, {40});
  const Interval rest = sweep.finish();
  EXPECT_EQ(sweep.times().compute, DurationNs{20});
  EXPECT_EQ(sweep.times().communication, DurationNs{30});
  EXPECT_EQ(sweep.times().copy, DurationNs{40});
  EXPECT_EQ(sweep.times().idle, DurationNs{10});
  EXPECT_EQ(sweep.times().communication_total, DurationNs{50});
  EXPECT_EQ(sweep.times().copy_total, DurationNs{90});
  EXPECT_EQ(rest, (Interval{{90}, {100}}));
}

TEST(WindowSweep, OperationsAreClippedToTheWindow) {
  WindowSweep sweep({{100}, {200}});
  sweep.begin(kCompute, {50}, {120});
  const Interval gap = sweep.begin(kCompute, {180}, {300});
  sweep.finish();
  EXPECT_EQ(gap, (Interval{{120}, {180}}));
  EXPECT_EQ(sweep.times().compute, DurationNs{40});
  EXPECT_EQ(sweep.times().idle, DurationNs{60});
}

TEST(WindowSweep, OverlapOfOneKindCountsOnce) {
  WindowSweep sweep({{0}, {100}});
  sweep.begin(kCommunication, {0}, {50});
  sweep.begin(kCommunication, {20}, {70});
  sweep.begin(kCommunication, {30}, {40});
  sweep.finish();
  EXPECT_EQ(sweep.times().communication_total, DurationNs{70});
  EXPECT_EQ(sweep.times().communication, DurationNs{70});
}

TEST(WindowSweep, OperationWithoutLengthEndsNoGap) {
  WindowSweep sweep({{0}, {100}});
  EXPECT_TRUE(sweep.begin(kCompute, {40}, {40}).empty());
  EXPECT_EQ(sweep.finish(), (Interval{{0}, {100}}));
  EXPECT_EQ(sweep.times().idle, DurationNs{100});
}

}  // namespace
}  // namespace gpudiag
