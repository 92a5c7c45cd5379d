// SPDX-License-Identifier: Apache-2.0
//
// Each fault switch of CUPTI, by what a client sees.
#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "client.hpp"
#include "scripted_core.hpp"

using namespace simgpu;
using namespace simgpu::testing;
using ::testing::ElementsAre;

namespace {

void start_kernels(std::size_t buffer_bytes = 65'536) {
  start(buffer_bytes);
  ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
}

void run_kernel(const char* name, std::uint32_t id, std::int64_t start_ns, std::int64_t end_ns) {
  OperationRecord op = kernel(name, id);
  queue(op);
  finish(op, start_ns, end_ns);
}

void flush() { ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS); }

std::vector<std::uint32_t> ids() {
  std::vector<std::uint32_t> found;
  for (const auto& record : kernels()) {
    found.push_back(record.correlationId);
  }
  return found;
}

std::size_t dropped() {
  std::size_t count = 99;
  EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &count), CUPTI_SUCCESS);
  return count;
}

void callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

}  // namespace

TEST(Faults, ASubscriptionIsRefusedWithTheErrorAskedFor) {
  in_own_process("cuptiSubscribe:error=12", [] {
    CUpti_SubscriberHandle handle = nullptr;
    EXPECT_EQ(cuptiSubscribe(&handle, callback, nullptr), CUPTI_ERROR_MAX_LIMIT_REACHED);
  });
}

TEST(Faults, AForeignToolHoldsTheSubscription) {
  in_own_process("cupti.foreign_subscriber:tool=compute-sanitizer", [] {
    CUpti_SubscriberHandle handle = nullptr;
    char holder[64] = {};
    CUpti_SubscriberParams params{CUpti_SubscriberParams_STRUCT_SIZE, "gpudiag", holder,
                                  sizeof holder};
    EXPECT_EQ(cuptiSubscribe_v2(&handle, callback, nullptr, &params),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_STREQ(holder, "compute-sanitizer");
  });
}

TEST(Faults, TheNthCallOfAnyFunctionFails) {
  in_own_process("cuptiActivityFlushAll:nth=2,error=999;cuptiGetNumEventDomains:error=9", [] {
    start_kernels();
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_UNKNOWN);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    std::uint32_t count = 0;
    EXPECT_EQ(cuptiGetNumEventDomains(&count), CUPTI_ERROR_HARDWARE);
  });
}

TEST(Faults, OneActivityKindIsRefused) {
  in_own_process("cuptiActivityEnable:error=14,name=^MEMSET$", [] {
    start();
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_ERROR_NOT_COMPATIBLE);
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
  });
}

TEST(Faults, AFunctionIsSlow) {
  in_own_process("cuptiActivityEnable:delay_ms=50", [] {
    start();
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
    EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(50));
  });
}

TEST(Faults, RecordsAreDroppedAndCounted) {
  in_own_process("record.drop:every=2", [] {
    start_kernels();
    for (std::uint32_t id = 1; id <= 4; ++id) {
      run_kernel("k", id, 10, 20);
    }
    flush();
    EXPECT_THAT(ids(), ElementsAre(1U, 3U));
    EXPECT_EQ(dropped(), 2U);
  });
}

TEST(Faults, RecordsAreDroppedWithoutACountAndByName) {
  in_own_process("record.drop:counted=0,name=CONCURRENT_KERNEL/lost", [] {
    start_kernels();
    run_kernel("lost_kernel", 1, 10, 20);
    run_kernel("kept_kernel", 2, 10, 20);
    flush();
    EXPECT_THAT(ids(), ElementsAre(2U));
    EXPECT_EQ(dropped(), 0U);
  });
}

TEST(Faults, RecordsHaveNoTimes) {
  in_own_process("record.zero_time:nth=2", [] {
    start_kernels();
    run_kernel("k", 1, 10, 20);
    run_kernel("k", 2, 30, 40);
    flush();
    ASSERT_EQ(kernels().size(), 2U);
    EXPECT_NE(kernels()[0].start, 0U);
    EXPECT_EQ(kernels()[1].start, 0U);
    EXPECT_EQ(kernels()[1].end, 0U);
  });
}

TEST(Faults, RecordsEndBeforeTheyStart) {
  in_own_process("record.negative:by_ns=700", [] {
    start_kernels();
    run_kernel("k", 1, 10'000, 20'000);
    flush();
    ASSERT_EQ(kernels().size(), 1U);
    EXPECT_EQ(kernels()[0].start - kernels()[0].end, 700U);
  });
}

TEST(Faults, RecordsComeInAForeignClock) {
  in_own_process("record.foreign_clock:nth=1", [] {
    start_kernels();
    std::uint64_t now = 0;
    ASSERT_EQ(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
    run_kernel("k", 1, 10'000, 12'500);
    flush();
    ASSERT_EQ(kernels().size(), 1U);
    EXPECT_EQ(kernels()[0].end - kernels()[0].start, 2'500U);
    EXPECT_LT(kernels()[0].start, now / 2);  // a cycle counter is decades away from the epoch
  });
}

TEST(Faults, TheFirstTimesAfterANewClockAreInTheOldOne) {
  in_own_process("clock.head:times=2", [] {
    start_kernels();
    ASSERT_EQ(cuptiActivityRegisterTimestampCallback([]() -> std::uint64_t { return 4'711; }),
              CUPTI_SUCCESS);
    run_kernel("k", 1, 1'000, 2'500);
    run_kernel("k", 2, 3'000, 4'000);
    flush();
    ASSERT_EQ(kernels().size(), 2U);
    EXPECT_EQ(kernels()[0].end - kernels()[0].start, 1'500U);
    EXPECT_GT(kernels()[0].start, 1'000'000'000'000'000'000U);
    EXPECT_EQ(kernels()[1].start, 4'711U);
    EXPECT_EQ(kernels()[1].end, 4'711U);
  });
}

TEST(Faults, RecordsComeOutOfOrder) {
  in_own_process("record.out_of_order", [] {
    start_kernels();
    for (std::uint32_t id = 1; id <= 3; ++id) {
      run_kernel("k", id, 10, 20);
    }
    flush();
    EXPECT_THAT(ids(), ElementsAre(3U, 2U, 1U));
  });
}

TEST(Faults, RecordsComeLate) {
  in_own_process("record.late:delay_ms=150,nth=1", [] {
    start_kernels();
    run_kernel("k", 1, 10, 20);
    flush();
    EXPECT_THAT(ids(), ElementsAre());
    run_kernel("k", 2, 30, 40);
    flush();
    EXPECT_THAT(ids(), ElementsAre(2U));
    for (int i = 0; i < 3'000 && ids().size() < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_THAT(ids(), ElementsAre(2U, 1U));
  });
}

TEST(Faults, BuffersAreWrittenAfterTheStop) {
  in_own_process("buffer.after_stop:delay_ms=200", [] {
    start_kernels();
    run_kernel("k", 1, 10, 20);
    flush();
    EXPECT_THAT(ids(), ElementsAre(1U));  // not stopped yet
    run_kernel("k", 2, 30, 40);
    ASSERT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    flush();
    EXPECT_THAT(ids(), ElementsAre(1U));
    for (int i = 0; i < 3'000 && ids().size() < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_THAT(ids(), ElementsAre(1U, 2U));
  });
}

TEST(Faults, HalfTheBuffersAreStolen) {
  in_own_process("buffer.steal:every=2", [] {
    start_kernels();
    for (std::uint32_t id = 1; id <= 4; ++id) {
      run_kernel("k", id, 10, 20);
      flush();
    }
    EXPECT_THAT(ids(), ElementsAre(1U, 3U));
  });
}

TEST(Faults, UnderWslThereAreNoKernelRecords) {
  in_own_process("wsl", [] {
    start_kernels();
    ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
    run_kernel("k", 1, 10, 20);
    run_call({ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, "cudaMalloc"});
    flush();
    EXPECT_THAT(client().kinds(), ElementsAre(CUPTI_ACTIVITY_KIND_RUNTIME));
    EXPECT_EQ(dropped(), 0U);
  });
}
