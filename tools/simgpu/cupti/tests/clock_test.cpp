// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's time: the real-time clock by default, a client's clock when it brings one.
#include <cupti.h>
#include <gtest/gtest.h>
#include <time.h>

#include <cstdint>
#include <thread>

#include "client.hpp"
#include "scripted_core.hpp"

using namespace simgpu;
using namespace simgpu::testing;

namespace {

std::int64_t read_clock(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// A client's clock of 3 ticks per ns that began at another time.
std::uint64_t ticks() {
  return static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC)) * 3 + 1'000'000'000'000'000;
}

constexpr Call kMalloc{ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
                       "cudaMalloc"};

}  // namespace

TEST(CuptiClock, TimestampsAreRealTimeByDefault) {
  in_own_process("", [] {
    const auto before = static_cast<std::uint64_t>(read_clock(CLOCK_REALTIME));
    std::uint64_t now = 0;
    EXPECT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
    const auto after = static_cast<std::uint64_t>(read_clock(CLOCK_REALTIME));
    EXPECT_LE(before, now);
    EXPECT_LE(now, after);
    EXPECT_EQ(cuptiGetTimestamp(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
  });
}

TEST(CuptiClock, RecordsAndTimestampsShareOneClock) {
  in_own_process("", [] {
    start();
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    ASSERT_EQ(cuptiGetTimestamp(&before), CUPTI_SUCCESS);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Call call = kMalloc;
    call.start_ns = now_ns();
    call.end_ns = call.start_ns + 100;
    run_call(call);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_EQ(cuptiGetTimestamp(&after), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    const auto calls = client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_LT(before, calls[0].start);
    EXPECT_LT(calls[0].end, after);
  });
}

TEST(CuptiClock, HostTimesAreReadFromTheClientsClockAtOnce) {
  in_own_process("", [] {
    start();
    ASSERT_EQ(cuptiActivityRegisterTimestampCallback(ticks), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
    const std::uint64_t before = ticks();
    run_call(kMalloc);
    const std::uint64_t after = ticks();
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    const auto calls = client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_LE(before, calls[0].start);
    EXPECT_LE(calls[0].start, calls[0].end);
    EXPECT_LE(calls[0].end, after);
    std::uint64_t now = 0;
    ASSERT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
    EXPECT_LE(after, now);
  });
}

TEST(CuptiClock, DeviceTimesAreConvertedToTheUnitOfTheClientsClock) {
  in_own_process("", [] {
    start();
    ASSERT_EQ(cuptiActivityRegisterTimestampCallback(ticks), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    OperationRecord op = kernel("k", 1);
    queue(op);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::int64_t end = now_ns();
    finish(op, end - 10'000'000, end);
    ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    ASSERT_EQ(kernels().size(), 1U);
    // 10 ms are 30 million ticks; the line through two samples is good to 0.1 %.
    EXPECT_NEAR(static_cast<double>(kernels()[0].end - kernels()[0].start), 30e6, 30e3);
  });
}

TEST(CuptiClock, ATimestampCallbackCannotBeUnset) {
  in_own_process("", [] {
    EXPECT_EQ(cuptiActivityRegisterTimestampCallback(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
  });
}
