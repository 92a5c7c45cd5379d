// SPDX-License-Identifier: Apache-2.0
#include "operation_records.hpp"

#include <cuda.h>

#include "library.hpp"

namespace simgpu::cupti {
namespace {

CUpti_ActivityKernel10 kernel_record(const OperationRecord& op, CUpti_ActivityKind kind) {
  CUpti_ActivityKernel10 record{};
  record.kind = kind;
  record.registersPerThread = static_cast<std::uint16_t>(op.registers_per_thread);
  record.deviceId = op.device_id;
  record.contextId = op.context_uid;
  record.streamId = op.stream_id;
  record.gridX = op.grid[0];
  record.gridY = op.grid[1];
  record.gridZ = op.grid[2];
  record.blockX = op.block[0];
  record.blockY = op.block[1];
  record.blockZ = op.block[2];
  record.staticSharedMemory = op.static_shared_bytes;
  record.dynamicSharedMemory = op.dynamic_shared_bytes;
  record.localMemoryPerThread = op.local_bytes_per_thread;
  record.localMemoryTotal = static_cast<std::uint32_t>(op.local_bytes_total);
  record.localMemoryTotal_v2 = op.local_bytes_total;
  record.correlationId = op.correlation_id;
  record.gridId = op.grid_id;
  record.name = op.name;
  record.launchType = op.launch_type;
  record.sharedMemoryExecuted =
      static_cast<std::uint32_t>(op.static_shared_bytes + op.dynamic_shared_bytes);
  record.graphNodeId = op.graph_node_id;
  record.graphId = op.graph_id;
  record.channelID = op.channel_id;
  record.channelType = static_cast<CUpti_ChannelType>(op.channel_type);
  record.clusterX = op.cluster[0];
  record.clusterY = op.cluster[1];
  record.clusterZ = op.cluster[2];
  return record;
}

CUpti_ActivityMemcpy6 copy_record(const OperationRecord& op) {
  CUpti_ActivityMemcpy6 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = static_cast<std::uint8_t>(op.copy_kind);
  record.srcKind = static_cast<std::uint8_t>(op.src_memory);
  record.dstKind = static_cast<std::uint8_t>(op.dst_memory);
  record.flags = op.is_async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  record.bytes = op.bytes;
  record.deviceId = op.device_id;
  record.contextId = op.context_uid;
  record.streamId = op.stream_id;
  record.correlationId = op.correlation_id;
  record.runtimeCorrelationId = op.correlation_id;
  record.graphNodeId = op.graph_node_id;
  record.graphId = op.graph_id;
  record.channelID = op.channel_id;
  record.channelType = static_cast<CUpti_ChannelType>(op.channel_type);
  record.copyCount = 1;
  return record;
}

CUpti_ActivityMemcpyPtoP4 peer_copy_record(const OperationRecord& op) {
  CUpti_ActivityMemcpyPtoP4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  record.srcKind = static_cast<std::uint8_t>(op.src_memory);
  record.dstKind = static_cast<std::uint8_t>(op.dst_memory);
  record.flags = op.is_async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  record.bytes = op.bytes;
  record.deviceId = op.device_id;
  record.contextId = op.context_uid;
  record.streamId = op.stream_id;
  record.srcDeviceId = op.src_device;
  record.srcContextId = op.src_context_uid;
  record.dstDeviceId = op.dst_device;
  record.dstContextId = op.dst_context_uid;
  record.correlationId = op.correlation_id;
  record.graphNodeId = op.graph_node_id;
  record.graphId = op.graph_id;
  record.channelID = op.channel_id;
  record.channelType = static_cast<CUpti_ChannelType>(op.channel_type);
  return record;
}

CUpti_ActivityMemset4 memset_record(const OperationRecord& op) {
  CUpti_ActivityMemset4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  record.value = op.memset_value;
  record.bytes = op.bytes;
  record.deviceId = op.device_id;
  record.contextId = op.context_uid;
  record.streamId = op.stream_id;
  record.correlationId = op.correlation_id;
  record.flags = op.is_async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  record.memoryKind = static_cast<std::uint16_t>(op.dst_memory);
  record.graphNodeId = op.graph_node_id;
  record.graphId = op.graph_id;
  record.channelID = op.channel_id;
  record.channelType = static_cast<CUpti_ChannelType>(op.channel_type);
  return record;
}

CUpti_ActivityGraphTrace2 graph_record(const OperationRecord& op) {
  CUpti_ActivityGraphTrace2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  record.correlationId = op.correlation_id;
  record.deviceId = op.device_id;
  record.graphId = op.graph_id;
  record.contextId = op.context_uid;
  record.streamId = op.stream_id;
  record.endDeviceId = op.device_id;
  record.endContextId = op.context_uid;
  return record;
}

CUpti_ActivityCudaEvent2 event_record(const OperationRecord& op) {
  CUpti_ActivityCudaEvent2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  record.correlationId = op.correlation_id;
  record.contextId = op.context_uid;
  record.streamId = op.stream_id;
  record.eventId = op.event_id;
  record.deviceId = op.device_id;
  record.cudaEventSyncId = op.event_sync_id;
  return record;
}

// The kind a kernel is recorded as, INVALID for not at all.
CUpti_ActivityKind kernel_kind(const KindTable& kinds, std::uint32_t context_uid) {
  for (const auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL}) {
    if (kinds.enabled(kind, context_uid)) {
      return kind;
    }
  }
  return CUPTI_ACTIVITY_KIND_INVALID;
}

PendingRecord queue_event(Library& lib, const OperationRecord& op) {
  if (!lib.kinds.enabled(CUPTI_ACTIVITY_KIND_CUDA_EVENT, op.context_uid)) {
    return {};
  }
  if (lib.settings.event_timestamps.load(std::memory_order_relaxed)) {
    return lib.store.append_pending(event_record(op), nullptr);
  }
  lib.store.append(event_record(op), nullptr);
  return {};
}

PendingRecord queue_copy(Library& lib, const OperationRecord& op) {
  const bool peer = op.copy_kind == CopyKind::peer_to_peer;
  const auto kind = peer ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY;
  if (!lib.kinds.enabled(kind, op.context_uid)) {
    return {};
  }
  return peer ? lib.store.append_pending(peer_copy_record(op), nullptr)
              : lib.store.append_pending(copy_record(op), nullptr);
}

PendingRecord queue(Library& lib, const OperationRecord& op) {
  // A graph that is traced as a whole gives no records of its nodes.
  if (op.graph_id != 0 && op.kind != OperationKind::graph_launch &&
      lib.kinds.enabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, op.context_uid)) {
    return {};
  }
  switch (op.kind) {
    case OperationKind::kernel: {
      const CUpti_ActivityKind kind = kernel_kind(lib.kinds, op.context_uid);
      return kind == CUPTI_ACTIVITY_KIND_INVALID
                 ? PendingRecord{}
                 : lib.store.append_pending(kernel_record(op, kind), op.name);
    }
    case OperationKind::memcpy:
      return queue_copy(lib, op);
    case OperationKind::memset:
      return lib.kinds.enabled(CUPTI_ACTIVITY_KIND_MEMSET, op.context_uid)
                 ? lib.store.append_pending(memset_record(op), nullptr)
                 : PendingRecord{};
    case OperationKind::graph_launch:
      return lib.kinds.enabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, op.context_uid)
                 ? lib.store.append_pending(graph_record(op), nullptr)
                 : PendingRecord{};
    case OperationKind::event_record:
      return queue_event(lib, op);
    default:
      break;  // host functions, waits: CUPTI has no record of them
  }
  return {};
}

struct Times {
  std::uint64_t start;
  std::uint64_t end;
};

template <class Record>
void set_times(std::uint8_t* slot, Times times) {
  auto* record = reinterpret_cast<Record*>(slot);
  record->start = times.start;
  record->end = times.end;
}

void finish_kernel(Library& lib, std::uint8_t* slot, const OperationRecord& op, Times times) {
  set_times<CUpti_ActivityKernel10>(slot, times);
  auto* record = reinterpret_cast<CUpti_ActivityKernel10*>(slot);
  record->completed = times.end;
  if (lib.settings.latency_timestamps.load(std::memory_order_relaxed)) {
    record->queued = lib.clock.device_timestamp(op.queued_ns);
    record->submitted = lib.clock.device_timestamp(op.submitted_ns);
  }
}

void fill(Library& lib, std::uint8_t* slot, const OperationRecord& op, Times times) {
  const auto kind = reinterpret_cast<const CUpti_Activity*>(slot)->kind;
  lib.faults.distort(kind, op.name, times.start, times.end);
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      finish_kernel(lib, slot, op, times);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      set_times<CUpti_ActivityMemcpy6>(slot, times);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      set_times<CUpti_ActivityMemcpyPtoP4>(slot, times);
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      set_times<CUpti_ActivityMemset4>(slot, times);
      break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      set_times<CUpti_ActivityGraphTrace2>(slot, times);
      break;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      reinterpret_cast<CUpti_ActivityCudaEvent2*>(slot)->deviceTimestamp = times.end;
      break;
    default:
      break;
  }
}

}  // namespace

std::uint64_t queue_operation(const OperationRecord& operation) {
  return is_inert() ? 0 : queue(library(), operation).pack();
}

void finish_operation(const OperationRecord& operation) {
  const PendingRecord record = PendingRecord::unpack(operation.tag);
  if (!record || is_inert()) {
    return;
  }
  Library& lib = library();
  const Times times{lib.clock.device_timestamp(operation.start_ns),
                    lib.clock.device_timestamp(operation.end_ns)};
  lib.store.complete(record,
                     [&](std::uint8_t* slot) { fill(lib, slot, operation, times); });
}

}  // namespace simgpu::cupti
