// SPDX-License-Identifier: Apache-2.0
//
// What stands in the records, and how they join.
#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "client.hpp"
#include "scripted_core.hpp"

using namespace simgpu;
using namespace simgpu::testing;
using ::testing::ElementsAre;

namespace {

void enable(std::initializer_list<CUpti_ActivityKind> kinds) {
  for (const auto kind : kinds) {
    ASSERT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS) << kind;
  }
}

void flush() { ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS); }

constexpr Call kMalloc{ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, "cudaMalloc",
                       1'000,              1'700,                                     2};
constexpr Call kLaunch{ApiDomain::runtime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                       "cudaLaunchKernel", 2'000, 2'900};
constexpr Call kDriverLaunch{ApiDomain::driver, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                             "cuLaunchKernel", 2'100, 2'800};

std::vector<CUpti_ActivityAPI> calls(CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_RUNTIME) {
  return client().of<CUpti_ActivityAPI>(kind);
}

}  // namespace

TEST(Records, AnApiCallCarriesItsFunctionTimesThreadAndResult) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_RUNTIME});
    const std::uint32_t id = run_call(kMalloc);
    flush();
    ASSERT_EQ(calls().size(), 1U);
    EXPECT_EQ(calls()[0].cbid, 20U);
    EXPECT_EQ(calls()[0].correlationId, id);
    EXPECT_EQ(calls()[0].end - calls()[0].start, 700U);
    EXPECT_EQ(calls()[0].returnValue, 2U);
    EXPECT_EQ(calls()[0].processId, static_cast<std::uint32_t>(getpid()));
    EXPECT_EQ(calls()[0].threadId, static_cast<std::uint32_t>(pthread_self()));
  });
}

TEST(Records, SystemThreadIdsAreThoseOfTheKernel) {
  in_own_process("", [] {
    start();
    EXPECT_EQ(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), CUPTI_SUCCESS);
    enable({CUPTI_ACTIVITY_KIND_RUNTIME});
    run_call(kMalloc);
    flush();
    EXPECT_EQ(calls().at(0).threadId, static_cast<std::uint32_t>(syscall(SYS_gettid)));
  });
}

TEST(Records, AKernelJoinsItsLaunchByTheCorrelationId) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    OperationRecord op;
    run_call(kMalloc);
    run_call(kLaunch, [&](std::uint32_t id) {
      op = kernel("axpy", id);
      op.grid[0] = 128;
      op.dynamic_shared_bytes = 1'024;
      op.static_shared_bytes = 16;
      op.registers_per_thread = 40;
      queue(op);
    });
    finish(op, 4'000, 9'000);
    flush();
    ASSERT_EQ(kernels().size(), 1U);
    const CUpti_ActivityKernel10 record = kernels()[0];
    EXPECT_EQ(record.correlationId, calls().at(1).correlationId);
    EXPECT_STREQ(record.name, "axpy");
    EXPECT_EQ(record.gridX, 128);
    EXPECT_EQ(record.blockX, 256);
    EXPECT_EQ(record.streamId, 7U);
    EXPECT_EQ(record.contextId, 1U);
    EXPECT_EQ(record.registersPerThread, 40);
    EXPECT_EQ(record.staticSharedMemory, 16);
    EXPECT_EQ(record.dynamicSharedMemory, 1'024);
    EXPECT_EQ(record.completed, record.end);
    EXPECT_EQ(record.queued, 0U);  // CUPTI_TIMESTAMP_UNKNOWN unless asked for
    // Host and device records share one clock.
    EXPECT_EQ(record.start - calls()[1].start, 2'000U);
  });
}

TEST(Records, LatencyTimestampsComeOnlyWhenAskedFor) {
  in_own_process("", [] {
    start();
    EXPECT_EQ(cuptiActivityEnableLatencyTimestamps(1), CUPTI_SUCCESS);
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    OperationRecord op = kernel("k", 1);
    op.queued_ns = 1'000;
    op.submitted_ns = 1'500;
    queue(op);
    finish(op, 2'000, 3'000);
    flush();
    EXPECT_EQ(kernels().at(0).start - kernels()[0].queued, 1'000U);
    EXPECT_EQ(kernels()[0].start - kernels()[0].submitted, 500U);
  });
}

TEST(Records, AnExternalIdStandsBeforeEachApiRecordItEncloses) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
    const auto push = [](CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
      ASSERT_EQ(cuptiActivityPushExternalCorrelationId(kind, id), CUPTI_SUCCESS);
    };
    push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 11);
    push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 12);
    push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 21);
    const std::uint32_t inside = run_call(kMalloc);
    std::uint64_t last = 0;
    EXPECT_EQ(
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last),
        CUPTI_SUCCESS);
    EXPECT_EQ(last, 12U);
    EXPECT_EQ(
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, nullptr),
        CUPTI_SUCCESS);
    EXPECT_EQ(
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, nullptr),
        CUPTI_SUCCESS);
    EXPECT_EQ(
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last),
        CUPTI_ERROR_QUEUE_EMPTY);
    run_call(kMalloc);
    flush();
    EXPECT_THAT(client().kinds(),
                ElementsAre(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                            CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME,
                            CUPTI_ACTIVITY_KIND_RUNTIME));
    const auto external =
        client().of<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    ASSERT_EQ(external.size(), 2U);
    EXPECT_EQ(external[0].externalId, 12U);
    EXPECT_EQ(external[1].externalId, 21U);
    EXPECT_EQ(external[0].correlationId, inside);
  });
}

TEST(Records, AnExternalIdNeedsAnEnabledApiKindAsItsCarrier) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    ASSERT_EQ(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1),
              CUPTI_SUCCESS);
    OperationRecord op;
    run_call(kLaunch, [&](std::uint32_t id) {
      op = kernel("k", id);
      queue(op);
    });
    finish(op, 10, 20);
    flush();
    EXPECT_THAT(client().kinds(), ElementsAre(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  });
}

TEST(Records, SingleApiFunctionsCanBeChosen) {
  in_own_process("", [] {
    start();
    ASSERT_EQ(cuptiActivityEnableRuntimeApi(kMalloc.cbid, 1), CUPTI_SUCCESS);
    ASSERT_EQ(cuptiActivityEnableDriverApi(kDriverLaunch.cbid, 1), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiActivityEnableRuntimeApi(99'999, 1), CUPTI_ERROR_INVALID_PARAMETER);
    run_call(kMalloc);
    run_call(kLaunch, [](std::uint32_t) { run_call(kDriverLaunch); });
    flush();
    EXPECT_THAT(client().kinds(),
                ElementsAre(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER));
  });
}

TEST(Records, TheKindOverridesEarlierChoicesOfSingleFunctions) {
  in_own_process("", [] {
    start();
    ASSERT_EQ(cuptiActivityEnableRuntimeApi(kMalloc.cbid, 0), CUPTI_SUCCESS);
    enable({CUPTI_ACTIVITY_KIND_RUNTIME});
    run_call(kMalloc);
    ASSERT_EQ(cuptiActivityEnableRuntimeApi(kMalloc.cbid, 0), CUPTI_SUCCESS);
    run_call(kMalloc);
    run_call(kLaunch);
    flush();
    ASSERT_EQ(calls().size(), 2U);
    EXPECT_EQ(calls()[0].cbid, kMalloc.cbid);
    EXPECT_EQ(calls()[1].cbid, kLaunch.cbid);
  });
}

TEST(Records, ASettingOfAContextSupersedesTheGlobalOne) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    auto* context = reinterpret_cast<CUcontext>(0x1000);
    ASSERT_EQ(cuptiActivityDisableContext(context, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
              CUPTI_SUCCESS);
    OperationRecord op = kernel("k", 1);
    queue(op);
    EXPECT_EQ(op.tag, 0U);
    EXPECT_EQ(cuptiActivityEnableContext(nullptr, CUPTI_ACTIVITY_KIND_MEMCPY),
              CUPTI_ERROR_INVALID_CONTEXT);
  });
}

TEST(Records, CopiesTellTheirEndsAndPeerCopiesHaveAKindOfTheirOwn) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET});
    OperationRecord copy = kernel(nullptr, 5);
    copy.kind = OperationKind::memcpy;
    copy.bytes = 4'096;
    copy.copy_kind = CopyKind::host_to_device;
    copy.src_memory = MemoryKind::pinned;
    copy.dst_memory = MemoryKind::device;
    copy.is_async = true;
    OperationRecord peer = copy;
    peer.copy_kind = CopyKind::peer_to_peer;
    peer.src_device = 0;
    peer.dst_device = 1;
    OperationRecord set = copy;
    set.kind = OperationKind::memset;
    set.memset_value = 0xff;
    queue(copy);
    queue(peer);
    queue(set);
    finish(copy, 10, 30);
    finish(peer, 10, 40);
    finish(set, 10, 50);
    flush();
    const auto copies = client().of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
    ASSERT_EQ(copies.size(), 1U);
    EXPECT_EQ(copies[0].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
    EXPECT_EQ(copies[0].srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
    EXPECT_EQ(copies[0].flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
    EXPECT_EQ(copies[0].bytes, 4'096U);
    EXPECT_EQ(copies[0].copyCount, 1U);
    EXPECT_EQ(copies[0].end - copies[0].start, 20U);
    const auto peers = client().of<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
    ASSERT_EQ(peers.size(), 1U);
    EXPECT_EQ(peers[0].dstDeviceId, 1U);
    EXPECT_EQ(peers[0].end - peers[0].start, 30U);
    const auto sets = client().of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
    ASSERT_EQ(sets.size(), 1U);
    EXPECT_EQ(sets[0].value, 0xffU);
    EXPECT_EQ(sets[0].end - sets[0].start, 40U);
  });
}

TEST(Records, AllNodesOfAGraphCarryTheLaunchsCorrelationIdAndTheirOwnNodeIds) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    for (const std::uint64_t node : {0x600000001U, 0x600000002U}) {
      OperationRecord op = kernel("node", 77);
      op.graph_id = 6;
      op.graph_node_id = node;
      queue(op);
      finish(op, 10, 20);
    }
    flush();
    ASSERT_EQ(kernels().size(), 2U);
    for (const auto& record : kernels()) {
      EXPECT_EQ(record.correlationId, 77U);
      EXPECT_EQ(record.graphId, 6U);
    }
    EXPECT_EQ(kernels()[0].graphNodeId, 0x600000001U);
    EXPECT_EQ(kernels()[1].graphNodeId, 0x600000002U);
  });
}

TEST(Records, AGraphTracedAsAWholeHidesItsNodes) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
    OperationRecord graph = kernel(nullptr, 77);
    graph.kind = OperationKind::graph_launch;
    graph.graph_id = 6;
    OperationRecord node = kernel("node", 77);
    node.graph_id = 6;
    node.graph_node_id = 1;
    OperationRecord single = kernel("single", 78);
    queue(graph);
    queue(node);
    queue(single);
    finish(node, 10, 20);
    finish(graph, 10, 95);
    finish(single, 100, 110);
    flush();
    ASSERT_EQ(kernels().size(), 1U);
    EXPECT_STREQ(kernels()[0].name, "single");
    const auto graphs = client().of<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    ASSERT_EQ(graphs.size(), 1U);
    EXPECT_EQ(graphs[0].graphId, 6U);
    EXPECT_EQ(graphs[0].correlationId, 77U);
    EXPECT_EQ(graphs[0].end - graphs[0].start, 85U);
  });
}

TEST(Records, SynchronisationSaysWhatItWaitedFor) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
    SyncRecord sync{};
    sync.kind = SyncKind::context_synchronize;
    sync.correlation_id = 9;
    sync.context_uid = 1;
    sync.stream_id = 0xffffffff;
    sync.event_id = 0xffffffff;
    sync.start_ns = 1'000;
    sync.end_ns = 6'000;
    synchronised(sync);
    sync.kind = SyncKind::event_synchronize;
    sync.stream_id = 7;  // where the event was recorded: no field of this record
    sync.event_id = 4;
    sync.event_sync_id = 40;
    sync.return_value = 600;  // CUDA_ERROR_NOT_READY: a query
    synchronised(sync);
    EXPECT_EQ(cuptiActivityEnableAllSyncRecords(0), CUPTI_SUCCESS);
    synchronised(sync);
    flush();
    const auto syncs =
        client().of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    ASSERT_EQ(syncs.size(), 2U);
    EXPECT_EQ(syncs[0].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
    EXPECT_EQ(syncs[0].end - syncs[0].start, 5'000U);
    EXPECT_EQ(syncs[0].streamId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    EXPECT_EQ(syncs[0].cudaEventSyncId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    EXPECT_EQ(syncs[1].streamId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    EXPECT_EQ(syncs[1].cudaEventId, 4U);
    EXPECT_EQ(syncs[1].cudaEventSyncId, 40U);
    EXPECT_EQ(syncs[1].returnValue, 600U);
  });
}

TEST(Records, EventsHaveADeviceTimeOnlyWhenAskedFor) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_CUDA_EVENT});
    OperationRecord event = kernel(nullptr, 3);
    event.kind = OperationKind::event_record;
    event.event_id = 4;
    event.event_sync_id = 40;
    queue(event);
    EXPECT_EQ(event.tag, 0U);
    EXPECT_EQ(cuptiActivityEnableCudaEventDeviceTimestamps(1), CUPTI_SUCCESS);
    queue(event);
    finish(event, 500, 500);
    flush();
    const auto events = client().of<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].deviceTimestamp, 0U);
    EXPECT_EQ(events[0].cudaEventSyncId, 40U);
    EXPECT_NE(events[1].deviceTimestamp, 0U);
  });
}

TEST(Records, AllocationAndReleaseAreTwoRecordsOfMemory2AndOneOfMemory) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY2});
    MemoryRecord memory{};
    memory.kind = MemoryKind::device;
    memory.address = 0x700000000000;
    memory.bytes = 512;
    memory.timestamp_ns = 1'000;
    memory.context_uid = 1;
    memory.stream_id = 0xffffffff;
    memory_changed(memory);
    memory.is_free = true;
    memory.timestamp_ns = 5'000;
    memory_changed(memory);
    flush();
    const auto separate = client().of<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
    ASSERT_EQ(separate.size(), 2U);
    EXPECT_EQ(separate[0].memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
    EXPECT_EQ(separate[1].memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
    EXPECT_EQ(separate[0].bytes, 512U);
    const auto lifetimes = client().of<CUpti_ActivityMemory>(CUPTI_ACTIVITY_KIND_MEMORY);
    ASSERT_EQ(lifetimes.size(), 1U);
    EXPECT_EQ(lifetimes[0].end - lifetimes[0].start, 4'000U);
  });
}

TEST(Records, ALateClientCanHaveContextsStreamsAndDevicesDumped) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_RUNTIME});  // the library follows resources from its first use
    ResourceRecord context{};
    context.event = ResourceEvent::context_created;
    context.context = reinterpret_cast<void*>(0x1000);
    context.context_uid = 1;
    resource_changed(context);
    ResourceRecord stream = context;
    stream.event = ResourceEvent::stream_created;
    stream.stream_id = 13;
    stream.stream_flag = 2;
    resource_changed(stream);
    ResourceRecord gone = stream;
    gone.stream_id = 14;
    resource_changed(gone);
    gone.event = ResourceEvent::stream_destroy_starting;
    resource_changed(gone);
    EXPECT_EQ(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_STREAM), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_DEVICE), CUPTI_SUCCESS);
    flush();
    const auto contexts = client().of<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
    ASSERT_EQ(contexts.size(), 1U);
    EXPECT_EQ(contexts[0].nullStreamId, 7);
    const auto streams = client().of<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM);
    ASSERT_EQ(streams.size(), 1U);
    EXPECT_EQ(streams[0].streamId, 13U);
    EXPECT_EQ(streams[0].flag, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING);
    const auto devices = client().of<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE);
    ASSERT_EQ(devices.size(), 1U);
    EXPECT_STREQ(devices[0].name, "Scripted GPU");
    EXPECT_EQ(devices[0].numMultiprocessors, 132U);
    std::free(const_cast<char*>(devices[0].name));
  });
}

TEST(Records, EachFlushLeavesARecordOfItsOverhead) {
  in_own_process("", [] {
    start();
    enable({CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_RUNTIME});
    run_call(kMalloc);
    flush();
    flush();
    const auto overheads = client().of<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
    ASSERT_EQ(overheads.size(), 1U);
    EXPECT_EQ(overheads[0].overheadKind, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
    EXPECT_LE(overheads[0].start, overheads[0].end);
    EXPECT_NE(overheads[0].start, 0U);
  });
}

TEST(Records, TheEnvironmentIsSampledByTheScriptOfSensors) {
  in_own_process("", [] {
    char path[] = "/tmp/simgpu_nvml_XXXXXX";
    const int file = mkstemp(path);
    const std::string script = "0 * clock.sm=1410 power=432100 temperature=71 throttle=0x4 fan=55\n";
    ASSERT_EQ(write(file, script.data(), script.size()), static_cast<ssize_t>(script.size()));
    close(file);
    setenv("SIMGPU_NVML", path, 1);
    start();
    enable({CUPTI_ACTIVITY_KIND_ENVIRONMENT});
    const auto samples = [] {
      return client().of<CUpti_ActivityEnvironment>(CUPTI_ACTIVITY_KIND_ENVIRONMENT);
    };
    for (int i = 0; i < 1'000 && samples().size() < 4; ++i) {
      usleep(1'000);
      flush();
    }
    unlink(path);
    ASSERT_GE(samples().size(), 4U);
    EXPECT_EQ(samples()[0].data.speed.smClock, 1'410U);
    EXPECT_EQ(samples()[0].data.speed.clocksThrottleReasons,
              CUPTI_CLOCKS_THROTTLE_REASON_SW_POWER_CAP);
    EXPECT_EQ(samples()[1].data.temperature.gpuTemperature, 71U);
    EXPECT_EQ(samples()[2].data.power.power, 432'100U);
    EXPECT_EQ(samples()[3].data.cooling.fanSpeed, 55U);
  });
}
