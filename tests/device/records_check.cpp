// SPDX-License-Identifier: Apache-2.0
//
// What stands in CUPTI's records and how they hang together.
#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "checks.hpp"

namespace gpudiag::device {
namespace {

constexpr auto kRuntime = CUPTI_CB_DOMAIN_RUNTIME_API;
constexpr auto kDriver = CUPTI_CB_DOMAIN_DRIVER_API;

TEST_F(Records, AnApiRecordFollowsTheOperationThatItLaunched) {
  row(10);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  deliver();
  const auto kernel = client().kernels();
  ASSERT_EQ(kernel.size(), 1u);
  std::size_t kernel_at = 0, call_at = 0;
  for (std::size_t i = 0; i < client().records.size(); ++i) {
    const auto* any = reinterpret_cast<const CUpti_Activity*>(client().records[i].data());
    if (any->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) kernel_at = i;
    if (any->kind == CUPTI_ACTIVITY_KIND_RUNTIME &&
        reinterpret_cast<const CUpti_ActivityAPI*>(any)->correlationId == kernel[0].correlationId)
      call_at = i;
  }
  EXPECT_GT(call_at, kernel_at);
}

TEST_F(Records, ACallAndWhatItLaunchedShareTheirCorrelationId) {
  row(11);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
  for (int i = 0; i < 5; ++i) ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  deliver();
  const auto kernels = client().kernels();
  ASSERT_EQ(kernels.size(), 5u);
  std::set<std::uint32_t> launches, ids;
  for (const auto& call : client().calls(kRuntime, "cudaLaunchKernel")) {
    launches.insert(call.correlationId);
    EXPECT_LE(call.start, call.end);
  }
  for (const auto& kernel : kernels) {
    ids.insert(kernel.correlationId);
    EXPECT_LE(kernel.start, kernel.end);
  }
  EXPECT_EQ(launches.size(), 5u);
  EXPECT_EQ(launches, ids);
}

TEST_F(Records, DriverCallsInsideRuntimeCallsCarryNoIdOfTheirOwn) {
  row(36);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER});
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  deliver();
  const auto kernels = client().kernels();
  ASSERT_EQ(kernels.size(), 1u);
  const auto outer = client().calls(kRuntime, "cudaLaunchKernel");
  ASSERT_EQ(outer.size(), 1u);
  const auto inner = client().calls(kDriver, "cuLaunchKernel");
  measured(fmt::format("{} nested driver records", inner.size()));
  // None, as on the simulated GPU, or with the id of the runtime call and inside it: the ledger counts
  // a call once either way.
  for (const auto& call : inner) {
    EXPECT_EQ(call.correlationId, outer[0].correlationId);
    EXPECT_GE(call.start, outer[0].start);
    EXPECT_LE(call.end, outer[0].end);
  }
}

TEST_F(Records, ExternalIdsStandBeforeTheCallThatTheyBelongTo) {
  row(12);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
          CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  constexpr auto kKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  ASSERT_CUPTI(cuptiActivityPushExternalCorrelationId(kKind, 41));
  ASSERT_CUPTI(cuptiActivityPushExternalCorrelationId(kKind, 42));
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  std::uint64_t popped = 0;
  ASSERT_CUPTI(cuptiActivityPopExternalCorrelationId(kKind, &popped));
  EXPECT_EQ(popped, 42u);
  ASSERT_CUPTI(cuptiActivityPopExternalCorrelationId(kKind, &popped));
  deliver();
  const auto kernels = client().kernels();
  ASSERT_EQ(kernels.size(), 1u);
  std::vector<std::uint64_t> external;
  for (const auto& link :
       client().of<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
    if (link.correlationId == kernels[0].correlationId) external.push_back(link.externalId);
  EXPECT_EQ(external, (std::vector<std::uint64_t>{42}));
}

TEST_F(Records, AStreamWaitLastsAsLongAsItsCall) {
  row(15);
  record({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaStream_t one, two;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  ASSERT_CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  cudaEvent_t event;
  ASSERT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  ASSERT_CUDA(launch_spin(one, 5'000'000));
  ASSERT_CUDA(cudaEventRecord(event, one));
  ASSERT_CUDA(cudaStreamWaitEvent(two, event, 0));
  deliver();
  const auto calls = client().calls(kRuntime, "cudaStreamWaitEvent");
  ASSERT_EQ(calls.size(), 1u);
  int found = 0;
  for (const auto& wait : client().of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
    if (wait.type != CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT) continue;
    ++found;
    EXPECT_EQ(wait.correlationId, calls[0].correlationId);
    EXPECT_LE(wait.end - wait.start, calls[0].end - calls[0].start);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(Records, ASynchronisationLiesInItsCallAndEndsWithWhatItWaitedFor) {
  row(42);
  record({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_RUNTIME,
          CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  cudaStream_t stream;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_CUDA(launch_spin(stream, 20'000'000));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  deliver();
  const auto calls = client().calls(kRuntime, "cudaStreamSynchronize");
  const auto kernels = client().kernels();
  ASSERT_EQ(calls.size(), 1u);
  ASSERT_EQ(kernels.size(), 1u);
  int found = 0;
  for (const auto& sync : client().of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
    if (sync.type != CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE) continue;
    ++found;
    EXPECT_EQ(sync.correlationId, calls[0].correlationId);
    EXPECT_EQ(sync.streamId, kernels[0].streamId);
    EXPECT_GE(sync.start, calls[0].start);
    EXPECT_LE(sync.end, calls[0].end);
    EXPECT_GE(sync.end, kernels[0].end);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(Records, AnEventRecordTellsEventStreamAndCallAndItsWaitNamesTheSameEvent) {
  row(41);
  record({CUPTI_ACTIVITY_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_RUNTIME,
          CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  cudaStream_t stream;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaEvent_t event;
  ASSERT_CUDA(cudaEventCreate(&event));
  ASSERT_CUDA(launch_spin(stream, kShortNs));
  ASSERT_CUDA(cudaEventRecord(event, stream));
  ASSERT_CUDA(cudaEventSynchronize(event));
  deliver();
  const auto events = client().of<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  const auto calls = client().calls(kRuntime, "cudaEventRecord");
  const auto kernels = client().kernels();
  ASSERT_EQ(events.size(), 1u);
  ASSERT_EQ(calls.size(), 1u);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(events[0].correlationId, calls[0].correlationId);
  EXPECT_EQ(events[0].streamId, kernels[0].streamId);
  EXPECT_EQ(events[0].contextId, kernels[0].contextId);
  int found = 0;
  for (const auto& sync : client().of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) {
    if (sync.type != CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE) continue;
    ++found;
    EXPECT_EQ(sync.cudaEventId, events[0].eventId);
    EXPECT_EQ(sync.cudaEventSyncId, events[0].cudaEventSyncId);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(Records, TheDefaultStreamIsSevenAndOthersCountFromThirteen) {
  row(21);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  cudaStream_t stream;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  ASSERT_CUDA(launch_spin(stream, kShortNs));
  deliver();
  const auto kernels = client().kernels();
  ASSERT_EQ(kernels.size(), 2u);
  measured(fmt::format("context {}, streams {} and {}", kernels[0].contextId, kernels[0].streamId,
                       kernels[1].streamId));
  EXPECT_EQ(kernels[0].contextId, 1u);
  EXPECT_EQ(kernels[0].streamId, 7u);
  EXPECT_EQ(kernels[1].streamId, 13u);
}

TEST_F(Records, WithBothKindsOfKernelRecordsOnlyConcurrentOnesCome) {
  row(14);
  record({CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  deliver();
  EXPECT_EQ(client().kernels().size(), 1u);
  EXPECT_TRUE(client().of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_KERNEL).empty());
}

TEST_F(Records, TheDefaultClockIsRealtime) {
  row(39);
  ASSERT_CUDA(cudaFree(nullptr));
  const std::int64_t before = now_ns(CLOCK_REALTIME);
  std::uint64_t read = 0;
  ASSERT_CUPTI(cuptiGetTimestamp(&read));
  const std::int64_t after = now_ns(CLOCK_REALTIME);
  measured(fmt::format("{} ns after the reading before it", static_cast<std::int64_t>(read) - before));
  EXPECT_GE(static_cast<std::int64_t>(read), before - 1'000);
  EXPECT_LE(static_cast<std::int64_t>(read), after + 1'000);
}

TEST_F(Records, AKernelStartsAfterItsLaunchAndEndsBeforeTheSynchronisationInOneClock) {
  row(20);
  record({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  std::uint64_t before = 0, after = 0;
  ASSERT_CUDA(launch_spin(nullptr, kShortNs));
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_CUPTI(cuptiGetTimestamp(&before));
  ASSERT_CUDA(launch_spin(nullptr, 10'000'000));
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_CUPTI(cuptiGetTimestamp(&after));
  deliver();
  const auto kernels = client().kernels();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_LE(kernels[0].end, before);
  EXPECT_GE(kernels[1].start, before);
  EXPECT_LE(kernels[1].end, after);
}

}  // namespace
}  // namespace gpudiag::device
