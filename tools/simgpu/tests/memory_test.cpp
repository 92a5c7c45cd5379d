// SPDX-License-Identifier: Apache-2.0
//
// Memory, copies, and which of them block.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "harness.hpp"

namespace simgpu_test {
namespace {

using simgpu::CopyKind;
using simgpu::MemoryKind;
using simgpu::OperationKind;

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaMalloc(&device_, kBytes), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&pinned_, kBytes), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaFree(device_), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned_), cudaSuccess);
  }

  static constexpr std::size_t kBytes = 256 * 1024;
  void* device_ = nullptr;
  void* pinned_ = nullptr;
};

// Runs the call in a thread behind a closed gate; says whether it came back before the gate opened.
template <typename Call>
bool returns_behind_gate(cudaStream_t stream, Call call) {
  std::atomic<bool> returned{false};
  std::thread caller;
  bool early = false;
  {
    Gate gate(stream);
    caller = std::thread([&] {
      EXPECT_EQ(call(), cudaSuccess);
      returned = true;
    });
    // Long enough for a call that does not block; one that does never returns before the gate.
    for (int i = 0; i < 200 && !returned; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    early = returned;
  }
  caller.join();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  return early;
}

TEST_F(Memory, WhatIsCopiedToTheDeviceComesBack) {
  std::vector<int> in = {1, 2, 3, 5, 8, 13};
  std::vector<int> out(in.size());
  const std::size_t bytes = in.size() * sizeof(int);
  ASSERT_EQ(cudaMemcpy(device_, in.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(out.data(), device_, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(in, out);
}

TEST_F(Memory, FreshDeviceMemoryIsZero) {
  std::vector<unsigned char> out(kBytes, 0xff);
  ASSERT_EQ(cudaMemcpy(out.data(), device_, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(out, std::vector<unsigned char>(kBytes, 0));
}

TEST_F(Memory, ASmallPageableSourceMayBeReusedAtOnce) {
  TestStream stream;
  int value = 41;
  {
    Gate gate(stream);
    ASSERT_EQ(cudaMemcpyAsync(device_, &value, sizeof value, cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    value = 0;
  }
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  int back = 0;
  ASSERT_EQ(cudaMemcpy(&back, device_, sizeof back, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, 41);
}

TEST_F(Memory, APinnedSourceIsReadWhenTheCopyRuns) {
  TestStream stream;
  auto* value = static_cast<int*>(pinned_);
  *value = 41;
  {
    Gate gate(stream);
    ASSERT_EQ(cudaMemcpyAsync(device_, value, sizeof *value, cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    *value = 42;
  }
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  int back = 0;
  ASSERT_EQ(cudaMemcpy(&back, device_, sizeof back, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, 42);
}

TEST_F(Memory, AsynchronousCopiesOfPinnedMemoryDoNotBlock) {
  TestStream stream;
  EXPECT_TRUE(returns_behind_gate(stream, [&] {
    return cudaMemcpyAsync(device_, pinned_, kBytes, cudaMemcpyHostToDevice, stream);
  }));
  EXPECT_TRUE(returns_behind_gate(stream, [&] {
    return cudaMemcpyAsync(pinned_, device_, kBytes, cudaMemcpyDeviceToHost, stream);
  }));
}

TEST_F(Memory, ACopyToPageableMemoryBlocksEvenWhenAsynchronous) {
  TestStream stream;
  int out = 0;
  EXPECT_FALSE(returns_behind_gate(stream, [&] {
    return cudaMemcpyAsync(&out, device_, sizeof out, cudaMemcpyDeviceToHost, stream);
  }));
}

TEST_F(Memory, ALargePageableSourceBlocksAndASmallOneDoesNot) {
  TestStream stream;
  std::vector<char> source(kBytes);
  EXPECT_TRUE(returns_behind_gate(stream, [&] {
    return cudaMemcpyAsync(device_, source.data(), 64 * 1024, cudaMemcpyHostToDevice, stream);
  }));
  EXPECT_FALSE(returns_behind_gate(stream, [&] {
    return cudaMemcpyAsync(device_, source.data(), 64 * 1024 + 1, cudaMemcpyHostToDevice, stream);
  }));
}

TEST_F(Memory, AllocationAndReleaseWaitForTheDevice) {
  TestStream stream;
  void* more = nullptr;
  EXPECT_FALSE(returns_behind_gate(stream, [&] { return cudaMalloc(&more, 100); }));
  EXPECT_FALSE(returns_behind_gate(stream, [&] { return cudaFree(more); }));
}

TEST_F(Memory, StreamOrderedAllocationDoesNotWait) {
  TestStream stream;
  void* more = nullptr;
  EXPECT_TRUE(returns_behind_gate(stream, [&] { return cudaMallocAsync(&more, 100, stream); }));
  EXPECT_TRUE(returns_behind_gate(stream, [&] { return cudaFreeAsync(more, stream); }));
  EXPECT_EQ(cudaFree(more), cudaErrorInvalidValue) << "given back when the stream got there";
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(Memory, RecordsSayBetweenWhichMemoriesACopyWent) {
  Recording recording;
  std::vector<char> pageable(128);
  void* second = nullptr;
  ASSERT_EQ(cudaMalloc(&second, 128), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(device_, pageable.data(), 128, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(pinned_, device_, 128, cudaMemcpyDefault), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(second, device_, 128, cudaMemcpyDeviceToDevice), cudaSuccess);
  recording.finish();
  const auto copies = recording.operations(OperationKind::memcpy);
  ASSERT_EQ(copies.size(), 3U);
  EXPECT_EQ(copies[0].copy_kind, CopyKind::host_to_device);
  EXPECT_EQ(copies[0].src_memory, MemoryKind::pageable);
  EXPECT_EQ(copies[0].dst_memory, MemoryKind::device);
  EXPECT_FALSE(copies[0].is_async);
  EXPECT_EQ(copies[1].copy_kind, CopyKind::device_to_host);
  EXPECT_EQ(copies[1].dst_memory, MemoryKind::pinned);
  EXPECT_EQ(copies[2].copy_kind, CopyKind::device_to_device);
  EXPECT_EQ(copies[2].bytes, 128U);
  const auto memory = recording.memory();
  ASSERT_EQ(memory.size(), 1U);
  EXPECT_EQ(memory[0].bytes, 128U);
  EXPECT_FALSE(memory[0].is_free);
  ASSERT_EQ(cudaFree(second), cudaSuccess);
}

TEST_F(Memory, FillsAndPitchedCopiesTouchTheirRowsOnly) {
  ASSERT_EQ(cudaMemset(device_, 0, 64), cudaSuccess);
  ASSERT_EQ(cudaMemset2D(device_, 16, 7, 4, 3), cudaSuccess);
  unsigned char out[3][8] = {};
  ASSERT_EQ(cudaMemcpy2D(out, 8, device_, 16, 6, 3, cudaMemcpyDeviceToHost), cudaSuccess);
  for (const auto& row : out) {
    EXPECT_EQ(std::memcmp(row, "\7\7\7\7\0\0\0\0", 8), 0);
  }
}

TEST_F(Memory, ADirectionThatTheAddressesContradictIsRefused) {
  char pageable[16] = {};
  EXPECT_EQ(cudaMemcpy(pageable, device_, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(pageable, 0, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(Memory, PointersKnowWhatTheyAre) {
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, static_cast<char*>(device_) + 100), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned_), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &attributes), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST_F(Memory, RegisteredMemoryIsPinnedUntilItIsUnregistered) {
  std::vector<char> mine(4096);
  ASSERT_EQ(cudaHostRegister(mine.data(), mine.size(), 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(mine.data(), mine.size(), 0), cudaErrorHostMemoryAlreadyRegistered);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, mine.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  ASSERT_EQ(cudaHostUnregister(mine.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(mine.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaGetLastError(), cudaErrorHostMemoryNotRegistered);
}

TEST(MemoryInfo, CountsWhatIsAllocatedAndRefusesWhatDoesNotFit) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  void* half = nullptr;
  ASSERT_EQ(cudaMalloc(&half, total_bytes / 2), cudaSuccess);
  std::size_t left_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&left_bytes, &total_bytes), cudaSuccess);
  EXPECT_EQ(free_bytes - left_bytes, total_bytes / 2);
  void* more = &total_bytes;
  EXPECT_EQ(cudaMalloc(&more, left_bytes + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "an allocation error is not sticky";
  ASSERT_EQ(cudaFree(half), cudaSuccess);
  ASSERT_EQ(cudaMemGetInfo(&left_bytes, &total_bytes), cudaSuccess);
  EXPECT_EQ(left_bytes, free_bytes);
}

TEST(Devices, APeerCopyNamesBothSides) {
  Recording recording;
  void* here = nullptr;
  void* there = nullptr;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&there, 64), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&here, 64), cudaSuccess);
  ASSERT_EQ(cudaMemcpyPeerAsync(there, 1, here, 0, 64, nullptr), cudaSuccess);
  recording.finish();
  const auto copies = recording.operations(OperationKind::memcpy);
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies[0].copy_kind, CopyKind::peer_to_peer);
  EXPECT_EQ(copies[0].src_device, 0U);
  EXPECT_EQ(copies[0].dst_device, 1U);
  EXPECT_NE(copies[0].src_context_uid, copies[0].dst_context_uid);
  EXPECT_EQ(cudaFree(here), cudaSuccess);
  EXPECT_EQ(cudaFree(there), cudaSuccess);
}

TEST(Devices, OneDeviceDoesNotWaitForAnother) {
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  Gate gate(nullptr);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(launch_timed(1000, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "would hang if it waited for device 1";
}

}  // namespace
}  // namespace simgpu_test
