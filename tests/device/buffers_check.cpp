// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's buffer protocol, on which live delivery rests: rows 1 to 9 of docs/assumptions.md.
#include <fmt/format.h>

#include "checks.hpp"

namespace gpudiag::device {
namespace {

using std::chrono::milliseconds;

std::size_t records_so_far() {
  const std::lock_guard lock{client().mutex};
  return client().records.size();
}

TEST_F(Buffers, AreGivenOnTheRecordingThreadAndComeBackOnAnother) {
  row(1);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  deliver();
  ASSERT_EQ(client().kernels().size(), 1u) << "the flush waits for the completed callbacks";
  EXPECT_EQ(client().requesters.front(), std::this_thread::get_id());
  for (const std::thread::id id : client().completers) EXPECT_NE(id, std::this_thread::get_id());
}

CUptiResult g_nested_flush = CUPTI_ERROR_UNKNOWN;

TEST_F(Buffers, AFlushFromWithinACompletedCallbackReturnsAtOnce) {
  row(2);
  ASSERT_CUPTI(cuptiActivityRegisterCallbacks(
      [](std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
        *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size = 65'536));
        *records = 0;
      },
      [](CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t) {
        g_nested_flush = cuptiActivityFlushAll(0);
      }));
  ASSERT_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  deliver();
  EXPECT_EQ(g_nested_flush, CUPTI_SUCCESS);
}

TEST_F(Buffers, OneRunningKernelWithholdsTheBufferOfItsThread) {
  row(3);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_CUDA(launch_spin(nullptr, kLongNs));
  ASSERT_CUPTI(cuptiActivityFlushAll(0));
  ASSERT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady) << "the machine is too slow for this check";
  EXPECT_EQ(records_so_far(), 0u) << "a kernel that has ended was delivered beside one that runs";
  deliver();
  EXPECT_EQ(client().kernels().size(), 2u);
}

TEST_F(Buffers, ARunningKernelHasNoTimesInAForcedFlushAndNeverComesAgain) {
  row(4);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  ASSERT_CUDA(launch_spin(nullptr, kLongNs));
  ASSERT_CUPTI(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  ASSERT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady) << "the machine is too slow for this check";
  const auto running = client().kernels();
  ASSERT_EQ(running.size(), 1u);
  measured(fmt::format("start {}, end {}", running[0].start, running[0].end));
  EXPECT_EQ(running[0].end, 0u);
  EXPECT_EQ(running[0].start, 0u);
  deliver();
  EXPECT_EQ(client().kernels().size(), 1u);
}

TEST_F(Buffers, FullOnesComeBackWithoutAFlush) {
  row(5);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, 8 * 1024);
  for (int i = 0; i < 500; ++i) ASSERT_CUDA(launch_spin(nullptr, 1'000));
  ASSERT_CUDA(cudaDeviceSynchronize());
  const auto begin = std::chrono::steady_clock::now();
  const auto limit = begin + milliseconds(5'000);
  while (records_so_far() == 0 && std::chrono::steady_clock::now() < limit) {
    ASSERT_CUDA(launch_spin(nullptr, 1'000));
    ASSERT_CUDA(cudaDeviceSynchronize());
    std::this_thread::sleep_for(milliseconds(1));
  }
  const auto waited = std::chrono::steady_clock::now() - begin;
  measured(fmt::format("first after {} ms", std::chrono::duration_cast<milliseconds>(waited).count()));
  EXPECT_GT(records_so_far(), 0u);
}

TEST_F(Buffers, EachThreadHasItsOwnAndGivesItUpAtItsEnd) {
  row(6);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  std::thread::id other;
  std::thread{[&] {
    other = std::this_thread::get_id();
    launch_spin(nullptr, kShortNs);
    cudaDeviceSynchronize();
  }}.join();
  deliver();
  EXPECT_EQ(client().kernels().size(), 2u);
  const auto& asked = client().requesters;
  measured(fmt::format("{} buffers for 2 threads", asked.size()));
  EXPECT_NE(std::find(asked.begin(), asked.end(), other), asked.end())
      << "the second thread wrote into the first one's buffer";
}

std::size_t g_second_bytes = 0;

TEST_F(Buffers, GoToTheClientThatRegisteredLast) {
  row(7);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  ASSERT_CUPTI(cuptiActivityRegisterCallbacks(
      [](std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
        *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size = 65'536));
        *records = 0;
      },
      [](CUcontext, std::uint32_t, std::uint8_t*, std::size_t, std::size_t valid) { g_second_bytes += valid; }));
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  deliver();
  EXPECT_EQ(records_so_far(), 0u);
  EXPECT_GE(g_second_bytes, 2 * sizeof(CUpti_ActivityKernel9) - 64);
}

TEST_F(Buffers, LostRecordsAreCountedForTheProcessAndOnce) {
  row(9);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, 16);  // no kernel's record fits
  for (int i = 0; i < 10; ++i) ASSERT_CUDA(launch_spin(nullptr, 1'000));
  deliver();
  std::size_t dropped = 0;
  ASSERT_CUPTI(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  measured(fmt::format("{} of 10", dropped));
  EXPECT_EQ(dropped, 10u);
  ASSERT_CUPTI(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(dropped, 0u);
}

}  // namespace
}  // namespace gpudiag::device
