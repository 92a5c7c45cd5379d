// SPDX-License-Identifier: Apache-2.0
#include "timeline/store.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

Call call(std::int64_t start, std::int64_t end, std::uint32_t id, ApiClass api = ApiClass::kLaunch,
          Index thread = 0) {
  Call made;
  made.start = {start};
  made.end = {end};
  made.correlation = CorrelationId{id};
  made.api = api;
  made.thread = thread;
  return made;
}

Operation operation(std::int64_t start, std::int64_t end, std::uint32_t id, Index stream = 0) {
  Operation made;
  made.start = {start};
  made.end = {end};
  made.correlation = CorrelationId{id};
  made.device = 0;
  made.stream = stream;
  return made;
}

TEST(Store, JoinsOperationsToTheCallWithTheirIdWhateverItIs) {
  Store store;
  store.calls = {call(20, 30, 2, ApiClass::kOther), call(0, 10, 1)};
  store.operations = {operation(40, 50, 2), operation(12, 40, 1)};
  EXPECT_EQ(store.prepare(), 0u);
  EXPECT_EQ(store.calls[0].correlation, CorrelationId{1});
  EXPECT_EQ(store.calls[0].first_operation, 1u);
  EXPECT_EQ(store.calls[1].first_operation, 0u);
}

TEST(Store, GraphLaunchHasAllItsNodesInOrderOfStart) {
  Store store;
  store.calls = {call(0, 50, 9, ApiClass::kGraphLaunch)};
  store.operations = {operation(80, 90, 9), operation(60, 70, 9), operation(70, 80, 9)};
  store.prepare();
  const Index first = store.calls[0].first_operation;
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(store.operations[first].next, 2u);
  EXPECT_EQ(store.operations[2].next, 0u);
  EXPECT_EQ(store.operations[0].next, kNone);
}

TEST(Store, DriverCallInsideARuntimeCallStandsBehindIt) {
  Store store;
  store.calls = {call(0, 50, 1, ApiClass::kOther), call(10, 20, 2, ApiClass::kLaunch)};
  store.operations = {operation(60, 70, 2)};
  store.prepare();
  EXPECT_FALSE(store.calls[0].nested);
  EXPECT_TRUE(store.calls[1].nested);
  EXPECT_EQ(store.calls[0].first_operation, 0u);
  EXPECT_EQ(store.calls[0].api, ApiClass::kLaunch);
}

TEST(Store, DriverCallMayShareTheIdOfItsRuntimeCall) {
  Store store;
  store.calls = {call(10, 20, 1), call(0, 50, 1)};
  store.operations = {operation(60, 70, 1)};
  store.prepare();
  EXPECT_EQ(store.calls[0].first_operation, 0u);
  EXPECT_TRUE(store.calls[1].nested);
}

TEST(Store, CallOfAnotherThreadAtTheSameTimeIsNotNested) {
  Store store;
  store.calls = {call(0, 50, 1), call(10, 20, 2, ApiClass::kLaunch, 1)};
  store.prepare();
  EXPECT_FALSE(store.calls[1].nested);
}

TEST(Store, IdsThatWrapAreIdsLikeOthers) {
  Store store;
  store.calls = {call(0, 5, 0xfffffffeu), call(10, 15, 0xffffffffu), call(20, 25, 1)};
  store.operations = {operation(30, 31, 1), operation(32, 33, 0xffffffffu),
                      operation(34, 35, 0xfffffffeu)};
  store.prepare();
  EXPECT_EQ(store.calls[0].first_operation, 2u);
  EXPECT_EQ(store.calls[1].first_operation, 1u);
  EXPECT_EQ(store.calls[2].first_operation, 0u);
}

TEST(Store, OperationWithoutIdHasNoCall) {
  Store store;
  store.calls = {call(0, 5, 0)};
  store.operations = {operation(10, 20, 0)};
  store.prepare();
  EXPECT_EQ(store.operations[0].call, kNone);
  EXPECT_EQ(store.calls[0].first_operation, kNone);
}

TEST(Store, SameOperationTwiceIsCountedAndKeptOnce) {
  Store store;
  store.calls = {call(0, 5, 1)};
  store.operations = {operation(10, 20, 1), operation(10, 20, 1), operation(10, 20, 1, 1)};
  EXPECT_EQ(store.prepare(), 1u);
  EXPECT_EQ(store.by_start.size(), 2u);
  EXPECT_EQ(store.prepare(), 0u);
}

TEST(Store, NothingLaunchedDuringACaptureIsExpectedToRun) {
  Store store;
  store.calls = {call(0, 5, 1, ApiClass::kCapture), call(10, 15, 2), call(20, 25, 3, ApiClass::kLaunch, 1),
                 call(30, 35, 4, ApiClass::kCapture), call(40, 45, 5)};
  store.prepare();
  EXPECT_TRUE(store.calls[1].capturing);
  EXPECT_TRUE(store.calls[2].capturing);
  EXPECT_FALSE(store.calls[4].capturing);
}

TEST(Store, CaptureStaysOpenOverCompaction) {
  Store store;
  store.calls = {call(0, 5, 1, ApiClass::kCapture), call(10, 15, 2)};
  store.prepare();
  store.compact(2, [](Index) { return true; }, [](Index, Index) {});
  store.calls = {call(20, 25, 3)};
  store.prepare();
  EXPECT_TRUE(store.calls[0].capturing);
}

TEST(Store, CompactionKeepsWhatIsNotRetired) {
  Store store;
  store.calls = {call(0, 5, 1), call(10, 15, 2)};
  store.operations = {operation(20, 30, 1), operation(30, 40, 2)};
  store.prepare();
  store.compact(1, [](Index index) { return index == 0; }, [](Index from, Index to) {
    EXPECT_EQ(from, 1u);
    EXPECT_EQ(to, 0u);
  });
  store.prepare();
  ASSERT_EQ(store.calls.size(), 1u);
  EXPECT_EQ(store.calls[0].first_operation, 0u);
  EXPECT_EQ(store.operations[0].correlation, CorrelationId{2});
}

}  // namespace
}  // namespace gpudiag
