// SPDX-License-Identifier: Apache-2.0
//
// The buffer protocol: who asks for buffers, when they come back, what a flush withholds.
#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "client.hpp"
#include "scripted_core.hpp"

using namespace simgpu;
using namespace simgpu::testing;
using ::testing::ElementsAre;

namespace {

constexpr std::size_t kKernelBytes = sizeof(CUpti_ActivityKernel10);

void enable_kernels() {
  ASSERT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
}

OperationRecord queued_kernel(std::uint32_t correlation_id) {
  OperationRecord op = kernel("k", correlation_id);
  queue(op);
  return op;
}

void wait_for_records(std::size_t count) {
  for (int i = 0; i < 5'000 && client().kinds().size() < count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

TEST(Buffers, AFlushBeforeCallbacksAreRegisteredIsAnInvalidOperation) {
  in_own_process("", [] { EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION); });
}

TEST(Buffers, RegisteringOnlyOneCallbackIsRefused) {
  in_own_process("", [] {
    EXPECT_EQ(cuptiActivityRegisterCallbacks(nullptr, nullptr), CUPTI_ERROR_INVALID_PARAMETER);
  });
}

TEST(Buffers, AFlushReturnsABufferThatIsNotFull) {
  in_own_process("", [] {
    start();
    enable_kernels();
    finish(queued_kernel(41), 1'000, 3'500);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    ASSERT_EQ(kernels().size(), 1U);
    EXPECT_EQ(kernels()[0].correlationId, 41U);
    EXPECT_EQ(kernels()[0].end - kernels()[0].start, 2'500U);
    EXPECT_EQ(client().last_walk, CUPTI_ERROR_MAX_LIMIT_REACHED);
    EXPECT_THAT(client().valid_sizes, ElementsAre(kKernelBytes));
  });
}

TEST(Buffers, AFlushWithholdsABufferWithOneUnfinishedRecord) {
  in_own_process("", [] {
    start();
    enable_kernels();
    finish(queued_kernel(1), 1'000, 2'000);
    const OperationRecord running = queued_kernel(2);
    finish(queued_kernel(3), 2'000, 3'000);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(kernels().size(), 0U);
    finish(running, 1'000, 4'000);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(kernels().size(), 3U);
  });
}

TEST(Buffers, AFlushAsksTheCoreForWhatHasEnded) {
  in_own_process("", [] {
    start();
    enable_kernels();
    const OperationRecord op = queued_kernel(1);
    on_deliver([op] { finish(op, 10, 20); });
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(kernels().size(), 1U);
  });
}

TEST(Buffers, AForcedFlushReturnsARunningKernelOnceWithoutAnEnd) {
  in_own_process("", [] {
    start();
    enable_kernels();
    const OperationRecord running = queued_kernel(9);
    EXPECT_EQ(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
    ASSERT_EQ(kernels().size(), 1U);
    EXPECT_EQ(kernels()[0].end, 0U);
    // Its end goes nowhere: the client has freed the buffer.
    finish(running, 1'000, 2'000);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(kernels().size(), 1U);
  });
}

TEST(Buffers, AFullBufferIsDeliveredWithoutAFlushWhenItsLastOperationEnds) {
  in_own_process("", [] {
    start(2 * kKernelBytes);
    enable_kernels();
    const OperationRecord first = queued_kernel(1);
    const OperationRecord second = queued_kernel(2);
    const OperationRecord third = queued_kernel(3);
    finish(first, 10, 20);
    EXPECT_EQ(client().kinds().size(), 0U);
    finish(second, 20, 30);
    wait_for_records(2);
    EXPECT_EQ(kernels().size(), 2U);
    finish(third, 30, 40);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(kernels().size(), 3U);
  });
}

TEST(Buffers, AFlushPeriodReturnsOnlyFullAndCompleteBuffers) {
  in_own_process("", [] {
    start(2 * kKernelBytes);
    enable_kernels();
    EXPECT_EQ(cuptiActivityFlushPeriod(10), CUPTI_SUCCESS);
    finish(queued_kernel(1), 10, 20);
    const OperationRecord running = queued_kernel(2);
    finish(queued_kernel(3), 30, 40);
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    EXPECT_EQ(kernels().size(), 0U);  // one buffer has a running kernel, the other is not full
    finish(running, 20, 30);
    wait_for_records(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(kernels().size(), 2U);
  });
}

TEST(Buffers, ABufferHoldsAtMostAsManyRecordsAsTheClientAllows) {
  in_own_process("", [] {
    start(65'536, 2);
    enable_kernels();
    for (std::uint32_t id = 1; id <= 5; ++id) {
      finish(queued_kernel(id), 10, 20);
    }
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_THAT(client().valid_sizes,
                ElementsAre(2 * kKernelBytes, 2 * kKernelBytes, kKernelBytes));
  });
}

TEST(Buffers, RecordsAreDroppedAndCountedWhileTheClientDeclines) {
  in_own_process("", [] {
    start();
    client().declines = true;
    enable_kernels();
    finish(queued_kernel(1), 10, 20);
    finish(queued_kernel(2), 10, 20);
    client().declines = false;
    finish(queued_kernel(3), 10, 20);
    std::size_t dropped = 0;
    EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
    EXPECT_EQ(dropped, 2U);
    EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
    EXPECT_EQ(dropped, 0U);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    ASSERT_EQ(kernels().size(), 1U);
    EXPECT_EQ(kernels()[0].correlationId, 3U);
  });
}

TEST(Buffers, ABufferTooSmallForARecordComesBackEmptyAndTheRecordCountsAsDropped) {
  in_own_process("", [] {
    start(kKernelBytes - 8);
    enable_kernels();
    finish(queued_kernel(1), 10, 20);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_THAT(client().valid_sizes, ElementsAre(0U));
    std::size_t dropped = 0;
    EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
    EXPECT_EQ(dropped, 1U);
  });
}

TEST(Buffers, EachThreadFillsABufferOfItsOwnThatItAskedForItself) {
  in_own_process("", [] {
    start();
    enable_kernels();
    std::thread::id other_id;
    std::thread other([&] {
      other_id = std::this_thread::get_id();
      finish(queued_kernel(2), 10, 20);
    });
    other.join();
    finish(queued_kernel(1), 10, 20);
    EXPECT_THAT(client().request_threads, ElementsAre(other_id, std::this_thread::get_id()));
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_THAT(client().valid_sizes, ElementsAre(kKernelBytes, kKernelBytes));
  });
}

TEST(Buffers, AllThreadsShareOneBufferWhenTheAttributeIsOff) {
  in_own_process("", [] {
    std::uint8_t off = 0;
    std::size_t size = sizeof off;
    ASSERT_EQ(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &off),
              CUPTI_SUCCESS);
    start();
    enable_kernels();
    std::thread other([&] { finish(queued_kernel(2), 10, 20); });
    other.join();
    finish(queued_kernel(1), 10, 20);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_THAT(client().valid_sizes, ElementsAre(2 * kKernelBytes));
  });
}

TEST(Buffers, CompletedBuffersComeOnAThreadOfCuptisOwn) {
  in_own_process("", [] {
    start();
    enable_kernels();
    finish(queued_kernel(1), 10, 20);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    ASSERT_EQ(client().completed_threads.size(), 1U);
    EXPECT_NE(client().completed_threads[0], std::this_thread::get_id());
  });
}

TEST(Buffers, AKindIsLatchedWhenTheOperationIsQueued) {
  in_own_process("", [] {
    start();
    enable_kernels();
    const OperationRecord before = queued_kernel(1);
    EXPECT_EQ(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    const OperationRecord after = queued_kernel(2);
    finish(before, 10, 20);
    finish(after, 20, 30);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    ASSERT_EQ(kernels().size(), 1U);
    EXPECT_EQ(kernels()[0].correlationId, 1U);
  });
}

TEST(Buffers, WhoeverRegistersLastGetsTheRecordsOfAnEarlierClientToo) {
  in_own_process("", [] {
    static std::vector<std::size_t> stolen;
    start();
    enable_kernels();
    finish(queued_kernel(1), 10, 20);
    ASSERT_EQ(cuptiActivityRegisterCallbacks(
                  [](std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
                    *buffer = static_cast<std::uint8_t*>(std::malloc(4'096));
                    *size = 4'096;
                    *max_records = 0;
                  },
                  [](CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t valid) {
                    stolen.push_back(valid);
                  }),
              CUPTI_SUCCESS);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_THAT(stolen, ElementsAre(kKernelBytes));
    EXPECT_EQ(kernels().size(), 0U);
  });
}

TEST(Buffers, AClientMayFlushFromItsCompletedCallback) {
  in_own_process("", [] {
    static int calls = 0;
    ASSERT_EQ(cuptiActivityRegisterCallbacks(
                  [](std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
                    *buffer = static_cast<std::uint8_t*>(std::malloc(4'096));
                    *size = 4'096;
                    *max_records = 0;
                  },
                  [](CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
                    ++calls;
                    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
                    std::free(buffer);
                  }),
              CUPTI_SUCCESS);
    enable_kernels();
    finish(queued_kernel(1), 10, 20);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(calls, 1);
  });
}

TEST(Buffers, AForkedChildIsInertAndNeverHangs) {
  in_own_process("", [] {
    start();
    enable_kernels();
    const OperationRecord op = queued_kernel(1);
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      OperationRecord late = queued_kernel(2);
      finish(op, 10, 20);
      const bool inert =
          cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == CUPTI_ERROR_NOT_INITIALIZED &&
          late.tag == 0;
      _exit(inert ? 7 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    finish(op, 10, 20);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(kernels().size(), 1U);
  });
}
