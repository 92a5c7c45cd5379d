// SPDX-License-Identifier: Apache-2.0
#include "sources/nccl/nccl_calls.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "sources/host/thread_log.hpp"
#include "sources/nccl/profiler_abi.h"

namespace gpudiag {
namespace {

struct NcclCalls : testing::Test {
  void SetUp() override {
    set_host_log(true);
    take();
  }
  void TearDown() override { set_host_log(false); }
  static std::optional<NcclCall> take() {
    std::optional<NcclCall> found;
    ThreadLogs::drain([&](const HostMessage& message, std::string_view bytes) {
      if (message.content != HostMessage::Content::kNcclCall) return;
      ASSERT_EQ(bytes.size(), sizeof(NcclCall));
      found.emplace();
      std::memcpy(&*found, bytes.data(), sizeof *found);
    });
    return found;
  }
};

TEST_F(NcclCalls, AnAllReducesPayloadHasCommunicatorBytesAndReduction) {
  const struct {
    std::uint64_t communicator = 77, bytes = 4096;
    std::int32_t reduction = 2;
  } payload;
  take_nccl_range("ncclAllReduce", &payload, sizeof payload);
  const auto call = take();
  ASSERT_TRUE(call);
  EXPECT_EQ(call->communicator, 77u);
  EXPECT_EQ(call->amount, 4096u);
  EXPECT_EQ(call->reduction, 2);
  EXPECT_EQ(word_of(call->function), "AllReduce");
}

TEST_F(NcclCalls, PayloadsOfOldVersionsLackTheCommunicator) {
  const struct {
    std::uint64_t bytes = 4096;
    std::int32_t reduction = 1;
  } payload;
  take_nccl_range("ncclAllReduce", &payload, sizeof payload);
  const auto call = take();
  ASSERT_TRUE(call);
  EXPECT_EQ(call->communicator, 0u);
  EXPECT_EQ(call->amount, 4096u);
  EXPECT_EQ(call->reduction, 1);
}

TEST_F(NcclCalls, AReducesPayloadHasTheRootBeforeTheReduction) {
  const struct {
    std::uint64_t communicator = 5, bytes = 8;
    std::int32_t root = 3, reduction = 4;
  } payload;
  take_nccl_range("ncclReduce", &payload, sizeof payload);
  const auto call = take();
  ASSERT_TRUE(call);
  EXPECT_EQ(call->root, 3);
  EXPECT_EQ(call->reduction, 4);
}

TEST_F(NcclCalls, APayloadThatIsTooShortIsPassedOver) {
  const std::int32_t few = 1;
  take_nccl_range("ncclAllReduce", &few, sizeof few);
  take_nccl_range("ncclCommInitRank", &few, sizeof few);
  take_nccl_range("ncclAllReduce", nullptr, 0);
  EXPECT_FALSE(take());
}

TEST_F(NcclCalls, OtherRangesAreNoCalls) {
  const std::uint64_t words[3] = {1, 2, 3};
  take_nccl_range("forward", words, sizeof words);
  take_nccl_range("ncclMemAlloc", words, sizeof words);
  EXPECT_FALSE(take());
}

TEST_F(NcclCalls, TextsAreCutAndNeedNoEnd) {
  gpudiag_nccl_event event{};
  event.size = sizeof event;
  event.type = kNcclEventColl;
  event.function = "AFunctionWithAVeryLongName";
  event.datatype = "ncclFloat8e4m3";
  take_nccl_event(event);
  const auto call = take();
  ASSERT_TRUE(call);
  EXPECT_EQ(word_of(call->function), "AFunctionWithAVe");
  EXPECT_EQ(word_of(call->datatype), "ncclFloat8e4m3");
  EXPECT_EQ(word_of(call->protocol), "");
}

TEST_F(NcclCalls, AnEventOfAnotherFormIsCountedAndDropped) {
  const std::uint64_t before = broken_nccl_events();
  gpudiag_nccl_event event{};
  event.size = 8;
  take_nccl_event(event);
  EXPECT_FALSE(take());
  EXPECT_EQ(broken_nccl_events(), before + 1);
}

}  // namespace
}  // namespace gpudiag
