// SPDX-License-Identifier: Apache-2.0
//
// Many threads at once: nothing is lost, nothing overlaps that must not. Run under ThreadSanitizer
// this is also the test of the engine's lock.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "harness.hpp"

namespace simgpu_test {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 60;

// A thread's share: its own stream, the default stream, events, copies, allocations.
void work(std::atomic<int>& callbacks) {
  TestStream stream(cudaStreamDefault);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(launch_timed(500, stream), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(nullptr, event, 0), cudaSuccess);
    ASSERT_EQ(launch_timed(300, nullptr), cudaSuccess);
    if (round % 10 == 0) {
      void* memory = nullptr;
      int value = round;
      ASSERT_EQ(cudaMallocAsync(&memory, 4096, stream), cudaSuccess);
      ASSERT_EQ(cudaMemcpyAsync(memory, &value, sizeof value, cudaMemcpyHostToDevice, stream),
                cudaSuccess);
      value = -1;
      ASSERT_EQ(cudaMemcpyAsync(&value, memory, sizeof value, cudaMemcpyDeviceToHost, stream),
                cudaSuccess);
      ASSERT_EQ(value, round);
      ASSERT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
      const auto count = [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); };
      ASSERT_EQ(cudaLaunchHostFunc(stream, count, &callbacks), cudaSuccess);
    }
    if (round % 7 == 0) {
      ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
    }
  }
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(Threads, LoseNothingAndKeepEachStreamInOrder) {
  Recording recording;
  std::atomic<int> callbacks{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&] { work(callbacks); });
  for (std::thread& thread : threads) thread.join();
  recording.finish();
  EXPECT_EQ(callbacks, kThreads * kRounds / 10);
  const auto kernels = recording.kernels();
  EXPECT_EQ(kernels.size(), static_cast<std::size_t>(kThreads * kRounds * 2));
  std::map<std::uint32_t, std::int64_t> stream_end_ns;
  for (const auto& kernel : kernels) {
    EXPECT_GE(kernel.start_ns, stream_end_ns[kernel.stream_id]);
    stream_end_ns[kernel.stream_id] = kernel.end_ns;
  }
  EXPECT_EQ(stream_end_ns.size(), static_cast<std::size_t>(kThreads + 1));
}

}  // namespace
}  // namespace simgpu_test
