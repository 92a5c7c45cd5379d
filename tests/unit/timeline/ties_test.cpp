// SPDX-License-Identifier: Apache-2.0
#include "timeline/ties.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

struct TiesTest : ::testing::Test {
  Ties ties;
  Index main = ties.thread_of(ThreadId{100});
  Index autograd = ties.thread_of(ThreadId{200});
  Index loader = ties.thread_of(ThreadId{300});
  Index compute = ties.stream_of(DeviceId{0}, ContextId{1}, StreamId{7});
  Index copies = ties.stream_of(DeviceId{0}, ContextId{1}, StreamId{20});
};

TEST_F(TiesTest, ThreadsThatTakeTurnsOnAStreamAreOneLine) {
  ties.launched(main, compute, 1000, true);
  ties.launched(autograd, compute, 1000, true);
  ties.launched(loader, copies, 1000, false);
  EXPECT_EQ(ties.line_of(main), ties.line_of(autograd));
  EXPECT_NE(ties.line_of(main), ties.line_of(loader));
}

TEST_F(TiesTest, StreamThatIsWaitedForBelongsToTheChain) {
  ties.launched(main, compute, 1000, true);
  ties.launched(loader, copies, 1000, false);
  EXPECT_FALSE(ties.in_chain(0, copies));
  ties.waits_for(compute, copies);
  EXPECT_TRUE(ties.in_chain(0, copies));
}

TEST_F(TiesTest, StreamThatWaitsForUsDoesNot) {
  ties.launched(main, compute, 1000, true);
  ties.launched(loader, copies, 1000, false);
  ties.waits_for(copies, compute);
  EXPECT_TRUE(ties.in_chain(0, compute));
  EXPECT_FALSE(ties.in_chain(0, copies));
}

TEST_F(TiesTest, LineWithMostComputeLeadsItsDevice) {
  ties.launched(loader, copies, 5000, false);
  ties.launched(main, compute, 1000, true);
  EXPECT_EQ(ties.leader_of(0), ties.line_of(main));
}

TEST_F(TiesTest, ThreadThatOnlyMarksJoinsTheLineItMarks) {
  ties.launched(autograd, compute, 1000, true);
  ties.marks(main, 0);
  EXPECT_EQ(ties.line_of(main), ties.line_of(autograd));
}

TEST_F(TiesTest, StreamsOfDifferentContextsAreDifferent) {
  EXPECT_NE(ties.stream_of(DeviceId{0}, ContextId{2}, StreamId{7}), compute);
  EXPECT_EQ(ties.stream_of(DeviceId{0}, ContextId{1}, StreamId{7}), compute);
}

}  // namespace
}  // namespace gpudiag
