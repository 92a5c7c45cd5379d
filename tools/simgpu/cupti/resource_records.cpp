// SPDX-License-Identifier: Apache-2.0
#include "resource_records.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "library.hpp"

namespace simgpu::cupti {
namespace {

// What exists, so that a late client can have it dumped, and allocations, whose records come when
// they are freed. Never destroyed.
struct Inventory {
  std::mutex mutex;
  std::map<std::uint32_t, ResourceRecord> contexts;                           // by uid
  std::map<std::pair<std::uint32_t, std::uint32_t>, ResourceRecord> streams;  // by context, id
  std::unordered_map<std::uint64_t, CUpti_ActivityMemory> allocations;        // by address
};

Inventory& inventory() {
  static auto* const instance = new Inventory;
  return *instance;
}

CUpti_ActivityContext3 context_record(std::uint32_t context_uid, std::uint32_t device_id,
                                      void* context) {
  CUpti_ActivityContext3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  record.contextId = context_uid;
  record.deviceId = device_id;
  record.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  record.nullStreamId = static_cast<std::uint16_t>(stream_id(context, nullptr, false));
  return record;
}

CUpti_ActivityStream stream_record(const ResourceRecord& resource) {
  CUpti_ActivityStream record{};
  record.kind = CUPTI_ACTIVITY_KIND_STREAM;
  record.contextId = resource.context_uid;
  record.streamId = resource.stream_id;
  record.priority = static_cast<std::uint32_t>(resource.stream_priority);
  record.flag = static_cast<CUpti_ActivityStreamFlag>(resource.stream_flag);
  record.correlationId = current_correlation_id();
  return record;
}

CUpti_ActivityDevice5 device_record(std::uint32_t id) {
  const DeviceDescription& device = device_description(id);
  CUpti_ActivityDevice5 record{};
  record.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  record.flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS;
  record.globalMemoryBandwidth = device.memory_bandwidth_bytes_per_s / 1'000;
  record.globalMemorySize = device.memory_bytes;
  record.constantMemorySize = 65'536;
  record.l2CacheSize = device.l2_bytes;
  record.numThreadsPerWarp = 32;
  record.coreClockRate = device.core_clock_khz;
  record.numMemcpyEngines = 3;
  record.numMultiprocessors = device.multiprocessors;
  record.maxIPC = 4;
  record.maxWarpsPerMultiprocessor = 64;
  record.maxBlocksPerMultiprocessor = 32;
  record.maxSharedMemoryPerMultiprocessor = 233'472;
  record.maxRegistersPerMultiprocessor = 65'536;
  record.maxRegistersPerBlock = 65'536;
  record.maxSharedMemoryPerBlock = 49'152;
  record.maxThreadsPerBlock = 1'024;
  record.maxBlockDimX = 1'024;
  record.maxBlockDimY = 1'024;
  record.maxBlockDimZ = 64;
  record.maxGridDimX = 2'147'483'647;
  record.maxGridDimY = 65'535;
  record.maxGridDimZ = 65'535;
  record.computeCapabilityMajor = device.compute_major;
  record.computeCapabilityMinor = device.compute_minor;
  record.id = id;
  record.eccEnabled = 1;
  std::memcpy(&record.uuid, device.uuid, sizeof record.uuid);
  record.name = strdup(device.name);  // the client frees it, as the header asks
  record.isCudaVisible = 1;
  record.gpuInstanceId = UINT32_MAX;
  record.computeInstanceId = UINT32_MAX;
  return record;
}

void record_devices(Library& lib) {
  for (std::uint32_t id = 0; id < device_count(); ++id) {
    lib.store.append(device_record(id), nullptr);
  }
}

// Keeps the inventory; returns whether this notice has an activity record.
void keep_inventory(const ResourceRecord& resource) {
  Inventory& existing = inventory();
  const std::lock_guard lock(existing.mutex);
  switch (resource.event) {
    case ResourceEvent::context_created:
      existing.contexts[resource.context_uid] = resource;
      break;
    case ResourceEvent::context_destroy_starting:
      existing.contexts.erase(resource.context_uid);
      break;
    case ResourceEvent::stream_created:
      existing.streams[{resource.context_uid, resource.stream_id}] = resource;
      break;
    case ResourceEvent::stream_destroy_starting:
      existing.streams.erase({resource.context_uid, resource.stream_id});
      break;
    default:
      break;
  }
}

void record_creation(Library& lib, const ResourceRecord& resource) {
  const auto wanted = [&](CUpti_ActivityKind kind) {
    return lib.kinds.enabled(kind, resource.context_uid);
  };
  if (resource.event == ResourceEvent::context_created && wanted(CUPTI_ACTIVITY_KIND_CONTEXT)) {
    lib.store.append(context_record(resource.context_uid, resource.device_id, resource.context),
                     nullptr);
  } else if (resource.event == ResourceEvent::stream_created &&
             wanted(CUPTI_ACTIVITY_KIND_STREAM)) {
    lib.store.append(stream_record(resource), nullptr);
  } else if (resource.event == ResourceEvent::driver_initialised &&
             wanted(CUPTI_ACTIVITY_KIND_DEVICE)) {
    record_devices(lib);
  }
}

void call_subscriber(Library& lib, const ResourceRecord& resource) {
  const auto cbid = static_cast<std::uint32_t>(resource.event);
  if (!lib.subscriber.wants(CUPTI_CB_DOMAIN_RESOURCE, cbid)) {
    return;
  }
  CUpti_ModuleResourceData module{resource.module_id, resource.cubin_bytes,
                                  static_cast<const char*>(resource.cubin)};
  CUpti_GraphData graph{};
  graph.graph = static_cast<CUgraph>(resource.graph);
  graph.originalGraph = static_cast<CUgraph>(resource.original_graph);
  graph.node = static_cast<CUgraphNode>(resource.node);
  graph.originalNode = static_cast<CUgraphNode>(resource.original_node);
  graph.nodeType = static_cast<CUgraphNodeType>(resource.node_type);
  graph.dependency = static_cast<CUgraphNode>(resource.dependency);
  graph.graphExec = static_cast<CUgraphExec>(resource.graph_exec);

  CUpti_ResourceData data{};
  data.context = static_cast<CUcontext>(resource.context);
  data.resourceHandle.stream = static_cast<CUstream>(resource.stream);
  if (resource.event == ResourceEvent::module_loaded ||
      resource.event == ResourceEvent::module_unload_starting) {
    data.resourceDescriptor = &module;
  } else if (resource.event >= ResourceEvent::graph_created) {
    data.resourceDescriptor = &graph;
  }
  lib.subscriber.notify(CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
}

void record_separately(Library& lib, const MemoryRecord& memory) {
  CUpti_ActivityMemory4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  record.memoryOperationType = memory.is_free ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                              : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  record.memoryKind = static_cast<CUpti_ActivityMemoryKind>(memory.kind);
  record.correlationId = memory.correlation_id;
  record.address = memory.address;
  record.bytes = memory.bytes;
  record.timestamp = lib.clock.host_timestamp(memory.timestamp_ns);
  record.processId = lib.process_id;
  record.deviceId = memory.device_id;
  record.contextId = memory.context_uid;
  record.streamId = memory.stream_id;
  record.isAsync = memory.is_async ? 1 : 0;
  if (memory.is_async) {
    record.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    record.memoryPoolConfig.address = memory.pool_address;
    record.memoryPoolConfig.releaseThreshold = memory.pool_release_threshold;
    record.memoryPoolConfig.pool.size = memory.pool_bytes;
    record.memoryPoolConfig.utilizedSize = memory.pool_used_bytes;
  }
  lib.store.append(record, nullptr);
}

// One record for an allocation and its release, made when it is released.
void record_lifetime(Library& lib, const MemoryRecord& memory) {
  Inventory& existing = inventory();
  const std::uint64_t now = lib.clock.host_timestamp(memory.timestamp_ns);
  std::unique_lock lock(existing.mutex);
  if (!memory.is_free) {
    CUpti_ActivityMemory record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMORY;
    record.memoryKind = static_cast<CUpti_ActivityMemoryKind>(memory.kind);
    record.address = memory.address;
    record.bytes = memory.bytes;
    record.start = now;
    record.processId = lib.process_id;
    record.deviceId = memory.device_id;
    record.contextId = memory.context_uid;
    existing.allocations[memory.address] = record;
    return;
  }
  const auto found = existing.allocations.find(memory.address);
  if (found == existing.allocations.end()) {
    return;
  }
  CUpti_ActivityMemory record = found->second;
  existing.allocations.erase(found);
  lock.unlock();
  record.end = now;
  lib.store.append(record, nullptr);
}

}  // namespace

void record_sync(const SyncRecord& sync) {
  if (is_inert()) {
    return;
  }
  Library& lib = library();
  const auto cbid = sync.kind == SyncKind::stream_synchronize
                        ? CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED
                    : sync.kind == SyncKind::context_synchronize
                        ? CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED
                        : CUPTI_CBID_SYNCHRONIZE_INVALID;
  if (lib.subscriber.wants(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid)) {
    CUpti_SynchronizeData data{static_cast<CUcontext>(sync.context),
                               static_cast<CUstream>(sync.stream)};
    lib.subscriber.notify(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid, &data);
  }
  if (!lib.kinds.enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sync.context_uid) ||
      (sync.return_value != 0 &&
       !lib.settings.all_sync_records.load(std::memory_order_relaxed))) {
    return;
  }
  CUpti_ActivitySynchronization2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  record.type = static_cast<CUpti_ActivitySynchronizationType>(sync.kind);
  std::uint64_t start = lib.clock.host_timestamp(sync.start_ns);
  std::uint64_t end = lib.clock.host_timestamp(sync.end_ns);
  lib.faults.distort(record.kind, nullptr, start, end);
  record.start = start;
  record.end = end;
  record.correlationId = sync.correlation_id;
  record.contextId = sync.context_uid;
  // The header says which of these mean something for which kind.
  const bool has_stream = sync.kind == SyncKind::stream_synchronize ||
                          sync.kind == SyncKind::stream_wait_event;
  const bool has_event =
      sync.kind == SyncKind::event_synchronize || sync.kind == SyncKind::stream_wait_event;
  record.streamId = has_stream ? sync.stream_id : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  record.cudaEventId = has_event ? sync.event_id : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  record.cudaEventSyncId = has_event ? sync.event_sync_id : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  record.returnValue = sync.return_value;
  lib.store.append(record, nullptr);
}

void record_memory(const MemoryRecord& memory) {
  if (is_inert()) {
    return;
  }
  Library& lib = library();
  if (lib.kinds.enabled(CUPTI_ACTIVITY_KIND_MEMORY2, memory.context_uid)) {
    record_separately(lib, memory);
  }
  if (lib.kinds.enabled(CUPTI_ACTIVITY_KIND_MEMORY, memory.context_uid)) {
    record_lifetime(lib, memory);
  }
}

void record_resource(const ResourceRecord& resource) {
  if (is_inert()) {
    return;
  }
  Library& lib = library();
  keep_inventory(resource);
  call_subscriber(lib, resource);
  record_creation(lib, resource);
}

void dump_existing(CUpti_ActivityKind kind) {
  Library& lib = library();
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE && driver_initialised()) {
    record_devices(lib);
    return;
  }
  // Copied out: appending may call the client, and nobody is called under the lock.
  Inventory& existing = inventory();
  std::unique_lock lock(existing.mutex);
  const auto contexts = existing.contexts;
  const auto streams = existing.streams;
  lock.unlock();
  if (kind == CUPTI_ACTIVITY_KIND_CONTEXT) {
    for (const auto& [uid, context] : contexts) {
      lib.store.append(context_record(uid, context.device_id, context.context), nullptr);
    }
  } else if (kind == CUPTI_ACTIVITY_KIND_STREAM) {
    for (const auto& [key, stream] : streams) {
      lib.store.append(stream_record(stream), nullptr);
    }
  }
}

}  // namespace simgpu::cupti
