// SPDX-License-Identifier: Apache-2.0
//
// The rules of streams and events.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "harness.hpp"

namespace simgpu_test {
namespace {

using simgpu::OperationKind;
using simgpu::OperationRecord;

std::int64_t length(const OperationRecord& operation) {
  return operation.end_ns - operation.start_ns;
}

TEST(Stream, OperationsOfOneStreamFollowEachOther) {
  TestStream stream;
  Recording recording;
  Gate gate(stream);
  ASSERT_EQ(launch_timed(5000, stream), cudaSuccess);
  ASSERT_EQ(launch_timed(7000, stream), cudaSuccess);
  gate.open();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(length(kernels[0]), 5000);
  EXPECT_EQ(kernels[1].start_ns, kernels[0].end_ns);
  EXPECT_EQ(length(kernels[1]), 7000);
}

TEST(Stream, AKernelNeverStartsBeforeItsLaunch) {
  TestStream stream;
  Recording recording;
  const std::int64_t before = simgpu::now_ns();
  ASSERT_EQ(launch_timed(1000, stream), cudaSuccess);
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_GE(kernels[0].queued_ns, before);
  EXPECT_GE(kernels[0].submitted_ns, kernels[0].queued_ns);
  EXPECT_GE(kernels[0].start_ns, kernels[0].submitted_ns);
}

// Two streams let go by one event start together.
TEST(Stream, NonBlockingStreamsRunSideBySide) {
  TestStream first;
  TestStream second;
  TestStream gated;
  cudaEvent_t go = nullptr;
  ASSERT_EQ(cudaEventCreate(&go), cudaSuccess);
  Recording recording;
  Gate gate(gated);
  ASSERT_EQ(cudaEventRecord(go, gated), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(first, go, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second, go, 0), cudaSuccess);
  ASSERT_EQ(launch_timed(9000, first), cudaSuccess);
  ASSERT_EQ(launch_timed(4000, second), cudaSuccess);
  gate.open();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].start_ns, kernels[1].start_ns);
  EXPECT_NE(kernels[0].stream_id, kernels[1].stream_id);
  EXPECT_EQ(cudaEventDestroy(go), cudaSuccess);
}

TEST(Stream, AWaitForAnEventHoldsLaterWorkBackAndNotEarlier) {
  TestStream producer;
  TestStream consumer;
  cudaEvent_t ready = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming), cudaSuccess);
  Recording recording;
  Gate gate(producer);
  ASSERT_EQ(launch_timed(50'000, producer), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(ready, producer), cudaSuccess);
  ASSERT_EQ(launch_timed(90'000, producer), cudaSuccess);
  ASSERT_EQ(launch_timed(100, consumer), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(consumer, ready, 0), cudaSuccess);
  ASSERT_EQ(launch_timed(100, consumer), cudaSuccess);
  ASSERT_EQ(cudaStreamQuery(consumer), cudaErrorNotReady);
  gate.open();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 4U);
  EXPECT_LT(kernels[2].start_ns, kernels[0].start_ns) << "queued before the wait";
  EXPECT_EQ(kernels[3].start_ns, kernels[0].end_ns) << "at the event, not at the end of the stream";
  EXPECT_EQ(cudaEventDestroy(ready), cudaSuccess);
}

TEST(Stream, AnEventNeverRecordedHoldsNothingBack) {
  TestStream stream;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(LegacyStream, WaitsForBlockingStreamsAndTheyForIt) {
  TestStream blocking(cudaStreamDefault);
  Recording recording;
  Gate gate(blocking);
  ASSERT_EQ(launch_timed(3000, blocking), cudaSuccess);
  ASSERT_EQ(launch_timed(4000, nullptr), cudaSuccess);
  ASSERT_EQ(launch_timed(5000, blocking), cudaSuccess);
  gate.open();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[1].start_ns, kernels[0].end_ns);
  EXPECT_EQ(kernels[2].start_ns, kernels[1].end_ns);
  EXPECT_EQ(kernels[1].stream_id, 7U) << "as CUPTI numbers the default stream";
}

TEST(LegacyStream, DoesNotConcernNonBlockingStreams) {
  TestStream stream(cudaStreamNonBlocking);
  Gate gate(stream);
  ASSERT_EQ(launch_timed(1000, nullptr), cudaSuccess);
  // Would wait for ever if the legacy stream waited for the gated one.
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
}

TEST(PerThreadStream, IsOneForEachThreadAndHeedsTheLegacyStream) {
  Recording recording;
  Gate gate(nullptr);
  ASSERT_EQ(launch_timed(2000, nullptr), cudaSuccess);
  ASSERT_EQ(launch_timed(1000, cudaStreamPerThread), cudaSuccess);
  std::thread([] { EXPECT_EQ(launch_timed(1000, cudaStreamPerThread), cudaSuccess); }).join();
  gate.open();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[1].start_ns, kernels[0].end_ns);
  EXPECT_EQ(kernels[2].start_ns, kernels[0].end_ns);
  EXPECT_NE(kernels[1].stream_id, kernels[2].stream_id);
}

TEST(Stream, AFullQueueBlocksTheLauncher) {
  TestStream stream;
  Gate gate(stream);
  for (int i = 1; i < 1024; ++i) ASSERT_EQ(launch_timed(1, stream), cudaSuccess);
  std::atomic<bool> launched{false};
  std::thread launcher([&] {
    EXPECT_EQ(launch_timed(1, stream), cudaSuccess);
    launched = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(launched);
  gate.open();
  launcher.join();
  EXPECT_TRUE(launched);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST(Event, ElapsedTimeIsThatOfTheDevice) {
  TestStream stream;
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  {
    Gate gate(stream);
    ASSERT_EQ(cudaEventRecord(start, stream), cudaSuccess);
    ASSERT_EQ(launch_timed(2'500'000, stream), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(end, stream), cudaSuccess);
    float early = 0;
    EXPECT_EQ(cudaEventElapsedTime(&early, start, end), cudaErrorNotReady);
  }
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float elapsed_ms = 0;
  ASSERT_EQ(cudaEventElapsedTime(&elapsed_ms, start, end), cudaSuccess);
  EXPECT_FLOAT_EQ(elapsed_ms, 2.5F);
  EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(end), cudaErrorInvalidResourceHandle) << "destroyed";
}

TEST(Event, WithoutTimingHasNoElapsedTime) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  float elapsed_ms = 0;
  EXPECT_EQ(cudaEventElapsedTime(&elapsed_ms, event, event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(Event, TwoRecordsOfOneEventHaveTwoSyncIds) {
  TestStream stream;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  Recording recording;
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  recording.finish();
  const auto records = recording.operations(OperationKind::event_record);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].event_id, records[1].event_id);
  EXPECT_NE(records[0].event_sync_id, records[1].event_sync_id);
  const auto syncs = recording.syncs();
  ASSERT_FALSE(syncs.empty());
  EXPECT_EQ(syncs[0].kind, simgpu::SyncKind::event_synchronize);
  EXPECT_EQ(syncs[0].event_sync_id, records[1].event_sync_id) << "it waited for the second";
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(HostFunction, RunsInItsPlaceAndHoldsTheStream) {
  TestStream stream;
  Recording recording;
  Gate gate(stream);
  ASSERT_EQ(launch_timed(20'000, stream), cudaSuccess);
  static std::atomic<std::int64_t> ran_ns{0};
  ASSERT_EQ(cudaLaunchHostFunc(
                stream, [](void*) { ran_ns = simgpu::now_ns(); }, nullptr),
            cudaSuccess);
  ASSERT_EQ(launch_timed(1000, stream), cudaSuccess);
  gate.open();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_GE(ran_ns, kernels[0].end_ns);
  EXPECT_GE(kernels[1].start_ns, ran_ns);
}

TEST(HostFunction, AStreamCallbackGetsItsStreamAndStatus) {
  TestStream stream;
  struct Seen {
    cudaStream_t stream = nullptr;
    cudaError_t status = cudaErrorUnknown;
  } seen;
  const auto callback = [](cudaStream_t on, cudaError_t status, void* data) {
    *static_cast<Seen*>(data) = Seen{on, status};
  };
  ASSERT_EQ(cudaStreamAddCallback(stream, callback, &seen, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(seen.stream, static_cast<cudaStream_t>(stream));
  EXPECT_EQ(seen.status, cudaSuccess);
}

TEST(Synchronise, ReturnsOnlyWhenTheWorkHasEnded) {
  TestStream stream;
  Recording recording;
  ASSERT_EQ(launch_timed(3'000'000, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  const std::int64_t returned_ns = simgpu::now_ns();
  recording.finish();
  const auto kernels = recording.kernels();
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_GE(returned_ns, kernels[0].end_ns);
  EXPECT_EQ(recording.syncs().at(0).kind, simgpu::SyncKind::stream_synchronize);
  EXPECT_EQ(recording.syncs().at(0).stream_id, kernels[0].stream_id);
}

TEST(Synchronise, AnUnfinishedOperationIsNotDelivered) {
  TestStream stream;
  Recording recording;
  {
    Gate gate(stream);
    ASSERT_EQ(launch_timed(1000, stream), cudaSuccess);
    simgpu::deliver_finished();
    EXPECT_TRUE(recording.kernels().empty());
  }
  recording.finish();
  EXPECT_EQ(recording.kernels().size(), 1U);
}

TEST(Stream, ADestroyedHandleIsRefused) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
}

TEST(Stream, PrioritiesAreKeptWithinTheRange) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -100), cudaSuccess);
  int priority = 0;
  unsigned flags = 0;
  EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
  EXPECT_EQ(cudaStreamGetFlags(stream, &flags), cudaSuccess);
  EXPECT_EQ(priority, -5);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace simgpu_test
