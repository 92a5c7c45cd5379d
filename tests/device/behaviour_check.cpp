// SPDX-License-Identifier: Apache-2.0
//
// What CUDA's calls wait for, and how the device works off its queue. Whether a call waits is told by
// the state of a kernel that runs for long, not by a clock.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>

#include "checks.hpp"

namespace gpudiag::device {
namespace {

constexpr std::size_t kBig = 1 << 20;

struct Memory {
  char* device = nullptr;
  char* other = nullptr;
  char* pinned = nullptr;
  std::vector<char> pageable = std::vector<char>(kBig);
  cudaStream_t stream = nullptr;
};

Memory memory() {
  Memory m;
  EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&m.device), kBig), cudaSuccess);
  EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&m.other), kBig), cudaSuccess);
  EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&m.pinned), kBig), cudaSuccess);
  EXPECT_EQ(cudaStreamCreateWithFlags(&m.stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(launch_spin(m.stream, kShortNs), cudaSuccess);  // loads the module
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return m;
}

/// Whether `call` returns only when the kernel queued before it on `stream` has ended.
bool waits(cudaStream_t stream, const std::function<cudaError_t()>& call) {
  EXPECT_EQ(launch_spin(stream, kLongNs), cudaSuccess);
  EXPECT_EQ(call(), cudaSuccess);
  const bool ended = cudaStreamQuery(stream) == cudaSuccess;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return ended;
}

TEST_F(Behaviour, CopiesBlockAsTheirMemoryDemands) {
  row(28);
  Memory m = memory();
  const auto copy = [&](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return [=] { return cudaMemcpyAsync(to, from, bytes, kind, m.stream); };
  };
  EXPECT_TRUE(waits(m.stream, copy(m.device, m.pageable.data(), kBig, cudaMemcpyHostToDevice)));
  EXPECT_TRUE(waits(m.stream, copy(m.pageable.data(), m.device, kBig, cudaMemcpyDeviceToHost)));
  EXPECT_TRUE(waits(m.stream, copy(m.pageable.data(), m.device, 4, cudaMemcpyDeviceToHost)));
  EXPECT_FALSE(waits(m.stream, copy(m.device, m.pageable.data(), 4'096, cudaMemcpyHostToDevice)));
  EXPECT_FALSE(waits(m.stream, copy(m.device, m.pinned, kBig, cudaMemcpyHostToDevice)));
  EXPECT_FALSE(waits(m.stream, copy(m.pinned, m.device, kBig, cudaMemcpyDeviceToHost)));
  EXPECT_FALSE(waits(m.stream, copy(m.other, m.device, kBig, cudaMemcpyDeviceToDevice)));
  const auto blocking = [&](void* to, const void* from, cudaMemcpyKind kind) {
    return [=] { return cudaMemcpy(to, from, kBig, kind); };
  };
  EXPECT_TRUE(waits(nullptr, blocking(m.device, m.pinned, cudaMemcpyHostToDevice)));
  EXPECT_TRUE(waits(nullptr, blocking(m.pinned, m.device, cudaMemcpyDeviceToHost)));
  EXPECT_FALSE(waits(nullptr, blocking(m.other, m.device, cudaMemcpyDeviceToDevice)));
}

TEST_F(Behaviour, FreeingWaitsForTheDeviceAndStreamOrderedMemoryDoesNot) {
  row(29);
  Memory m = memory();
  EXPECT_TRUE(waits(m.stream, [&] { return cudaFree(m.other); }));
  void* async = nullptr;
  EXPECT_FALSE(waits(m.stream, [&] { return cudaMallocAsync(&async, kBig, m.stream); }));
  EXPECT_FALSE(waits(m.stream, [&] { return cudaFreeAsync(async, m.stream); }));
}

TEST_F(Behaviour, AllocatingWaitsForTheDevice) {
  row(29);
  Memory m = memory();
  void* more = nullptr;
  // Larger than what the driver keeps in reserve, so that it must map memory.
  EXPECT_TRUE(waits(m.stream, [&] { return cudaMalloc(&more, std::size_t{64} << 20); }));
}

TEST_F(Behaviour, SynchronisingTheDefaultStreamWaitsForBlockingStreamsOnly) {
  row(30);
  Memory m = memory();
  cudaStream_t blocking;
  ASSERT_CUDA(cudaStreamCreate(&blocking));
  EXPECT_TRUE(waits(blocking, [] { return cudaStreamSynchronize(nullptr); }));
  EXPECT_FALSE(waits(m.stream, [] { return cudaStreamSynchronize(nullptr); }));
}

// The launcher itself is watched and no call of CUDA's made beside it: a launch that waits may hold a
// lock that others need.
TEST_F(Behaviour, AboutAThousandLaunchesFitIntoTheQueue) {
  row(31);
  Memory m = memory();
  constexpr int kMost = 4'096;
  ASSERT_CUDA(launch_spin(m.stream, 5 * kLongNs));
  std::atomic<int> queued{0};
  std::thread launcher{[&] {
    while (queued < kMost && launch_spin(m.stream, 1'000) == cudaSuccess) ++queued;
  }};
  int depth = -1;
  while (queued != depth) {
    depth = queued;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  launcher.join();
  ASSERT_CUDA(cudaDeviceSynchronize());
  measured(fmt::format("{} launches behind a running kernel", depth));
  EXPECT_GE(depth, 900);
  EXPECT_LE(depth, 1'100);
}

TEST_F(Behaviour, KernelsOfTwoStreamsRunSideBySide) {
  row(32);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  cudaStream_t one, two;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  ASSERT_CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  ASSERT_CUDA(launch_spin(one, kLongNs));
  ASSERT_CUDA(launch_spin(two, kLongNs));
  deliver();
  const auto kernels = client().kernels();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_LT(std::max(kernels[0].start, kernels[1].start), std::min(kernels[0].end, kernels[1].end));
}

// The replay gives a device its queued work back to back.
TEST_F(Behaviour, QueuedKernelsFollowEachOtherInOrderAtOnce) {
  row(33);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  Memory m = memory();  // one kernel
  ASSERT_CUDA(launch_spin(m.stream, 50'000'000));
  for (int i = 0; i < 300; ++i) ASSERT_CUDA(launch_spin(m.stream, 5'000));
  deliver();
  auto kernels = client().kernels();
  ASSERT_EQ(kernels.size(), 302u);
  std::ranges::sort(kernels, {}, &CUpti_ActivityKernel9::correlationId);
  std::vector<std::int64_t> gaps, spacings;
  for (std::size_t i = 100; i < kernels.size(); ++i) {
    gaps.push_back(static_cast<std::int64_t>(kernels[i].start) - static_cast<std::int64_t>(kernels[i - 1].end));
    spacings.push_back(static_cast<std::int64_t>(kernels[i].start - kernels[i - 1].start));
    EXPECT_GE(gaps.back(), 0);
  }
  std::ranges::sort(gaps);
  std::ranges::sort(spacings);
  measured(fmt::format("median gap {} ns, start to start {} ns", gaps[100], spacings[100]));
  EXPECT_LE(gaps[100], 2'000) << "queued kernels leave gaps that the ledger would charge";
}

TEST_F(Behaviour, AKernelOnAnIdleStreamStartsAfterItsLaunchBegan) {
  row(34);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
  Memory m = memory();
  for (int i = 0; i < 50; ++i) {
    ASSERT_CUDA(launch_spin(m.stream, 1'000));
    ASSERT_CUDA(cudaStreamSynchronize(m.stream));
  }
  deliver();
  std::map<std::uint32_t, std::uint64_t> begun;
  for (const auto& call : client().calls(CUPTI_CB_DOMAIN_RUNTIME_API, "cudaLaunchKernel"))
    begun[call.correlationId] = call.start;
  std::vector<std::int64_t> latencies;
  for (const auto& kernel : client().kernels()) {
    ASSERT_TRUE(begun.contains(kernel.correlationId));
    latencies.push_back(static_cast<std::int64_t>(kernel.start - begun[kernel.correlationId]));
    EXPECT_GT(latencies.back(), 0);
  }
  ASSERT_EQ(latencies.size(), 51u);
  std::ranges::sort(latencies);
  measured(fmt::format("median {} ns from the call to the kernel's start", latencies[25]));
}

TEST_F(Behaviour, FreshMemoryReadsAsZero) {
  row(37);
  Memory m = memory();
  ASSERT_CUDA(cudaMemcpy(m.pageable.data(), m.device, 4'096, cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::count(m.pageable.begin(), m.pageable.begin() + 4'096, '\0'), 4'096);
}

TEST_F(Behaviour, AForkedChildGetsAnErrorFromCuda) {
  row(40);
  ASSERT_CUDA(cudaFree(nullptr));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    void* memory = nullptr;
    _exit(cudaMalloc(&memory, 16) == cudaErrorInitializationError ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace gpudiag::device
