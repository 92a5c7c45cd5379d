// SPDX-License-Identifier: Apache-2.0
//
// NCCL over the devices of one process. Ranks in processes of their own are tested with PyTorch.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "nccl/abi.hpp"

using namespace simgpu::nccl;

extern "C" {
int ncclGetVersion(int* version);
int ncclGetUniqueId(UniqueId* id);
int ncclCommInitRank(void** out, int ranks, UniqueId id, int rank);
int ncclCommInitAll(void** out, int count, const int* devices);
int ncclCommSplit(void* communicator, int color, int key, void** out, void* config);
int ncclCommDestroy(void* communicator);
int ncclCommAbort(void* communicator);
int ncclCommGetAsyncError(void* communicator, int* error);
int ncclCommCount(const void* communicator, int* count);
int ncclCommUserRank(const void* communicator, int* rank);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllReduce(const void* input, void* output, std::size_t count, int type, int reduction,
                  void* communicator, cudaStream_t stream);
int ncclAllGather(const void* input, void* output, std::size_t count, int type,
                  void* communicator, cudaStream_t stream);
int ncclScatter(const void* input, void* output, std::size_t count, int type, int root,
                void* communicator, cudaStream_t stream);
int ncclSend(const void* input, std::size_t count, int type, int peer, void* communicator,
             cudaStream_t stream);
int ncclRecv(void* output, std::size_t count, int type, int peer, void* communicator,
             cudaStream_t stream);
int ncclRedOpCreatePreMulSum(int* reduction, const void* scalar, int type, int residence,
                             void* communicator);
}

namespace {

constexpr int kRanks = 4;

// A communicator over four devices, with a stream and some memory on each.
class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ncclCommInitAll(communicators.data(), kRanks, nullptr), kSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      cudaSetDevice(rank);
      ASSERT_EQ(cudaStreamCreateWithFlags(&streams[at], cudaStreamNonBlocking), cudaSuccess);
      ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory[at]), 4096), cudaSuccess);
    }
  }
  void TearDown() override {
    for (void* communicator : communicators) ncclCommDestroy(communicator);
  }
  void put(std::size_t rank, const std::vector<float>& values) {
    cudaSetDevice(static_cast<int>(rank));
    cudaMemcpy(memory[rank], values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
  }
  std::vector<float> get(std::size_t rank, std::size_t count, std::size_t from = 0) {
    cudaSetDevice(static_cast<int>(rank));
    EXPECT_EQ(cudaStreamSynchronize(streams[rank]), cudaSuccess);
    std::vector<float> values(count);
    cudaMemcpy(values.data(), memory[rank] + from, count * sizeof(float), cudaMemcpyDeviceToHost);
    return values;
  }
  int all_reduce(std::size_t rank, std::size_t count, int reduction = kSum) {
    cudaSetDevice(static_cast<int>(rank));
    return ncclAllReduce(memory[rank], memory[rank], count, kFloat32, reduction,
                         communicators[rank], streams[rank]);
  }

  std::array<void*, kRanks> communicators{};
  std::array<cudaStream_t, kRanks> streams{};
  std::array<float*, kRanks> memory{};
};

TEST_F(Nccl, RanksKnowTheirPlaces) {
  for (int rank = 0; rank < kRanks; ++rank) {
    int count = 0;
    int own = -1;
    EXPECT_EQ(ncclCommCount(communicators[static_cast<std::size_t>(rank)], &count), kSuccess);
    EXPECT_EQ(ncclCommUserRank(communicators[static_cast<std::size_t>(rank)], &own), kSuccess);
    EXPECT_EQ(count, kRanks);
    EXPECT_EQ(own, rank);
  }
}

TEST_F(Nccl, AllReduceSumsWhatAllRanksHave) {
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    put(rank, {static_cast<float>(rank), 1.0F, -2.0F});
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) ASSERT_EQ(all_reduce(rank, 3), kSuccess);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(get(rank, 3), (std::vector<float>{6.0F, 4.0F, -8.0F}));
  }
}

TEST_F(Nccl, AKernelRunsUntilTheLastRankHasCome) {
  for (std::size_t rank = 0; rank + 1 < kRanks; ++rank) ASSERT_EQ(all_reduce(rank, 1), kSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
  ASSERT_EQ(all_reduce(kRanks - 1, 1), kSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(streams[0]), cudaSuccess);
}

TEST_F(Nccl, WorkBehindAKernelWaitsForTheOtherRanks) {
  put(0, {0.0F});
  ASSERT_EQ(all_reduce(0, 1), kSuccess);
  cudaEvent_t behind = nullptr;
  cudaSetDevice(0);
  cudaEventCreate(&behind);
  cudaEventRecord(behind, streams[0]);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(cudaEventQuery(behind), cudaErrorNotReady);
  for (std::size_t rank = 1; rank < kRanks; ++rank) ASSERT_EQ(all_reduce(rank, 1), kSuccess);
  EXPECT_EQ(cudaEventSynchronize(behind), cudaSuccess);
}

TEST_F(Nccl, AbortEndsKernelsThatWait) {
  ASSERT_EQ(all_reduce(0, 1), kSuccess);
  EXPECT_EQ(ncclCommAbort(communicators[0]), kSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
}

TEST_F(Nccl, ACommunicatorThatWasDestroyedTakesNoMoreWork) {
  EXPECT_EQ(ncclCommDestroy(communicators[0]), kSuccess);
  EXPECT_EQ(all_reduce(0, 1), kInvalidArgument);
}

TEST_F(Nccl, SplitRanksByColourAndOrdersThemByKey) {
  std::array<void*, kRanks> parts{};
  std::vector<std::thread> hosts;
  // Colours 0 0 1 none; keys turn the first two around.
  const std::array<int, kRanks> colors = {0, 0, 1, -1};
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    hosts.emplace_back([&, rank] {
      cudaSetDevice(static_cast<int>(rank));
      EXPECT_EQ(ncclCommSplit(communicators[rank], colors[rank], 10 - static_cast<int>(rank),
                              &parts[rank], nullptr),
                kSuccess);
    });
  }
  for (std::thread& host : hosts) host.join();
  EXPECT_EQ(parts[3], nullptr);
  const std::array<int, 3> ranks = {1, 0, 0};
  const std::array<int, 3> counts = {2, 2, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    int rank = -1;
    int count = 0;
    EXPECT_EQ(ncclCommUserRank(parts[i], &rank), kSuccess);
    EXPECT_EQ(ncclCommCount(parts[i], &count), kSuccess);
    EXPECT_EQ(rank, ranks[i]);
    EXPECT_EQ(count, counts[i]);
  }
}

TEST_F(Nccl, AGroupMayHoldMoreMessagesThanTheRingAndInAnyOrder) {
  constexpr std::size_t kMessages = 11;
  std::vector<float> values;
  for (std::size_t i = 0; i < kMessages; ++i) values.push_back(static_cast<float>(i) + 0.5F);
  put(0, values);
  put(1, values);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    cudaSetDevice(static_cast<int>(rank));
    const int peer = 1 - static_cast<int>(rank);
    ncclGroupStart();
    for (std::size_t i = 0; i < kMessages; ++i) {
      ASSERT_EQ(ncclSend(memory[rank] + i, 1, kFloat32, peer, communicators[rank], streams[rank]),
                kSuccess);
    }
    for (std::size_t i = 0; i < kMessages; ++i) {
      ASSERT_EQ(
          ncclRecv(memory[rank] + 100 + i, 1, kFloat32, peer, communicators[rank], streams[rank]),
          kSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), kSuccess);
  }
  EXPECT_EQ(get(0, kMessages, 100), values);
  EXPECT_EQ(get(1, kMessages, 100), values);
}

TEST_F(Nccl, ScatterGivesEveryRankItsPart) {
  put(2, {1.0F, 2.0F, 3.0F, 4.0F});
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    cudaSetDevice(static_cast<int>(rank));
    ASSERT_EQ(ncclScatter(memory[rank], memory[rank] + 8, 1, kFloat32, 2, communicators[rank],
                          streams[rank]),
              kSuccess);
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(get(rank, 1, 8), std::vector<float>{static_cast<float>(rank) + 1.0F});
  }
}

TEST_F(Nccl, AFactorIsAppliedBeforeTheSum) {
  const float half = 0.5F;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    put(rank, {static_cast<float>(rank + 1)});
    int reduction = 0;
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&reduction, &half, kFloat32, 1, communicators[rank]),
              kSuccess);
    ASSERT_EQ(all_reduce(rank, 1, reduction), kSuccess);
  }
  EXPECT_EQ(get(3, 1), std::vector<float>{5.0F});
}

TEST_F(Nccl, RanksThatDisagreeGetAnAsynchronousError) {
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(all_reduce(rank, rank == 0 ? 2 : 1), kSuccess);
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    cudaStreamSynchronize(streams[rank]);
    int error = kSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(communicators[rank], &error), kSuccess);
    EXPECT_EQ(error, kInvalidUsage);
  }
}

TEST_F(Nccl, WrongArgumentsAreRefused) {
  EXPECT_EQ(ncclAllReduce(memory[0], memory[0], 1, kFloat32, kSum, nullptr, streams[0]),
            kInvalidArgument);
  EXPECT_EQ(ncclAllReduce(memory[0], memory[0], 1, 99, kSum, communicators[0], streams[0]),
            kInvalidArgument);
  EXPECT_EQ(ncclAllReduce(memory[0], memory[0], 1, kFloat32, 99, communicators[0], streams[0]),
            kInvalidArgument);
  EXPECT_EQ(ncclAllReduce(nullptr, memory[0], 1, kFloat32, kSum, communicators[0], streams[0]),
            kInvalidArgument);
  EXPECT_EQ(ncclSend(memory[0], 1, kFloat32, kRanks, communicators[0], streams[0]),
            kInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), kInvalidUsage);
}

TEST(NcclInit, ARankThatIsTakenIsRefused) {
  UniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
  void* first = nullptr;
  void* second = nullptr;
  ncclGroupStart();
  ASSERT_EQ(ncclCommInitRank(&first, 2, id, 0), kSuccess);
  EXPECT_EQ(ncclCommInitRank(&second, 2, id, 0), kSystemError);
  ASSERT_EQ(ncclCommInitRank(&second, 2, id, 1), kSuccess);
  EXPECT_EQ(ncclGroupEnd(), kSuccess);
}

TEST(NcclInit, WhatAKilledProcessLeftBehindIsRemoved) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const std::string name = "/simgpu-nccl-" + std::to_string(child) + "-0000000000000001";
  const int file = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_GE(file, 0);
  close(file);
  void* communicator = nullptr;
  const int device = 0;
  ASSERT_EQ(ncclCommInitAll(&communicator, 1, &device), kSuccess);
  EXPECT_EQ(shm_open(name.c_str(), O_RDWR, 0600), -1);
}

}  // namespace
