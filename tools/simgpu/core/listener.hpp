// SPDX-License-Identifier: Apache-2.0
//
// The way out of the simulated GPU: what the core tells a tracing library.
//
// libcudart.so / libcuda.so → core (streams, memory, clock) → **listener** → libcupti.so
//
// The simulated CUPTI is a shared library of its own. It registers one Listener and says with
// `set_wanted()` which notices it wants; a notice nobody wants costs one relaxed load. All times
// are nanoseconds. Host times are CLOCK_MONOTONIC; operation times are in the clock of the device
// (CLOCK_MONOTONIC too unless the fault "clock" shifts or stretches it; see device_clock_ns()).
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

enum class ApiDomain : std::uint8_t { runtime, driver };

// One call of the runtime or driver API. The object lives on the caller's stack from enter to
// exit, so that a listener may keep what it needs in `tool_data` between the two.
struct ApiCall {
  ApiDomain domain;
  std::uint32_t cbid;            // CUPTI_RUNTIME_TRACE_CBID_* or CUPTI_DRIVER_TRACE_CBID_*
  std::uint32_t correlation_id;  // also in every operation this call queues; never 0
  const char* function_name;     // static storage
  const void* params;            // the struct of generated_cuda_*_meta.h; null for "no parameters"
  void* return_value;            // cudaError_t* or CUresult*; valid at exit only
  const char* symbol_name;       // kernel name of launches with kWantSymbols, else null
  void* context;                 // CUcontext current on the thread, may be null at enter
  std::uint32_t context_uid;     // 0 while there is no context
  std::int64_t start_ns;         // host clock, set before enter
  std::int64_t end_ns;           // host clock, set before exit
  std::uint64_t tool_data[4];    // the listener's own, zero at enter
};

enum class OperationKind : std::uint8_t {
  kernel,
  memcpy,
  memset,
  host_function,
  event_record,
  event_wait,   // cudaStreamWaitEvent as the stream sees it
  graph_launch,  // a graph as a whole: from its first node's start to its last node's end
  marker         // the core's own bookkeeping; never shown to a listener
};

// Values are those of CUpti_ActivityMemcpyKind.
enum class CopyKind : std::uint8_t {
  unknown = 0,
  host_to_device = 1,
  device_to_host = 2,
  device_to_device = 8,
  host_to_host = 9,
  peer_to_peer = 10
};

// Values are those of CUpti_ActivityMemoryKind.
enum class MemoryKind : std::uint8_t {
  unknown = 0,
  pageable = 1,
  pinned = 2,
  device = 3,
  array = 4,
  managed = 5,
  device_static = 6,
  managed_static = 7
};

// One operation of a device. At `operation_queued` the times start_ns and end_ns are 0.
struct OperationRecord {
  OperationKind kind;
  std::uint64_t id;              // unique in the process, in order of queueing; never 0
  std::uint32_t correlation_id;  // of the call that launched it
  std::uint32_t device_id;
  std::uint32_t context_uid;
  std::uint32_t stream_id;
  void* context;                 // CUcontext
  void* stream;                  // CUstream, null for the legacy default stream
  std::uint32_t graph_id;        // of the executable graph; 0 outside graphs
  std::uint64_t graph_node_id;   // 0 outside graphs
  std::uint32_t channel_id;
  std::uint8_t channel_type;     // values of CUpti_ChannelType: 1 compute, 2 asynchronous copy
  std::int64_t queued_ns;        // device clock: the call put it into the queue
  std::int64_t submitted_ns;     // device clock: it reached the device
  std::int64_t start_ns;         // device clock
  std::int64_t end_ns;           // device clock
  std::uint64_t tag;             // what the listener returned at operation_queued

  // kernel
  const char* name;              // mangled; stable for the life of the process
  std::int32_t grid[3];
  std::int32_t block[3];
  std::uint32_t cluster[3];      // 0 where no cluster was asked for
  std::int32_t static_shared_bytes;
  std::int32_t dynamic_shared_bytes;
  std::uint32_t registers_per_thread;
  std::uint32_t local_bytes_per_thread;
  std::uint64_t local_bytes_total;
  std::int64_t grid_id;
  std::uint8_t launch_type;      // values of CUpti_ActivityLaunchType: 0 regular, 1 cooperative

  // memcpy, memset
  std::uint64_t bytes;
  CopyKind copy_kind;
  MemoryKind src_memory;
  MemoryKind dst_memory;         // of a memset too
  bool is_async;                 // the call was an ...Async one
  std::uint32_t memset_value;
  std::uint32_t src_device;      // peer copies; else device_id
  std::uint32_t dst_device;
  std::uint32_t src_context_uid;
  std::uint32_t dst_context_uid;

  // event_record, event_wait
  std::uint32_t event_id;
  std::uint64_t event_sync_id;   // of the record: every cudaEventRecord gets a new one
};

// Values are those of CUpti_ActivitySynchronizationType.
enum class SyncKind : std::uint8_t {
  event_synchronize = 1,
  stream_wait_event = 2,
  stream_synchronize = 3,
  context_synchronize = 4
};

struct SyncRecord {
  SyncKind kind;
  std::uint32_t correlation_id;
  std::uint32_t context_uid;
  std::uint32_t stream_id;       // CUPTI_SYNCHRONIZATION_INVALID_VALUE (0xffffffff) where none
  std::uint32_t event_id;        // likewise
  std::uint64_t event_sync_id;   // 0 where none
  std::int64_t start_ns;         // host clock
  std::int64_t end_ns;
  std::uint32_t return_value;
  void* context;
  void* stream;
};

struct MemoryRecord {
  bool is_free;
  bool is_async;                 // stream ordered (cudaMallocAsync, cudaFreeAsync)
  MemoryKind kind;
  std::uint32_t correlation_id;
  std::uint64_t address;
  std::uint64_t bytes;
  std::int64_t timestamp_ns;     // host clock
  std::uint32_t device_id;
  std::uint32_t context_uid;
  std::uint32_t stream_id;       // async ones; else 0xffffffff
  std::uint64_t pool_address;    // async ones
  std::uint64_t pool_release_threshold;
  std::uint64_t pool_bytes;
  std::uint64_t pool_used_bytes;
};

// Values are those of CUpti_CallbackIdResource.
enum class ResourceEvent : std::uint8_t {
  context_created = 1,
  context_destroy_starting = 2,
  stream_created = 3,
  stream_destroy_starting = 4,
  driver_initialised = 5,
  module_loaded = 6,
  module_unload_starting = 7,
  graph_created = 9,
  graph_destroy_starting = 10,
  graph_cloned = 11,
  node_create_starting = 12,
  node_created = 13,
  node_destroy_starting = 14,
  node_dependency_created = 15,
  graph_exec_create_starting = 17,
  graph_exec_created = 18,
  graph_exec_destroy_starting = 19,
  node_cloned = 20
};

struct ResourceRecord {
  ResourceEvent event;
  void* context;                 // CUcontext
  std::uint32_t context_uid;
  std::uint32_t device_id;
  void* stream;                  // CUstream
  std::uint32_t stream_id;
  std::int32_t stream_priority;
  std::uint8_t stream_flag;      // values of CUpti_ActivityStreamFlag: 1 default, 2 non-blocking…
  std::uint32_t module_id;
  const void* cubin;             // may be null
  std::size_t cubin_bytes;
  void* graph;                   // CUgraph
  void* original_graph;
  void* node;                    // CUgraphNode
  void* original_node;
  void* dependency;              // CUgraphNode
  int node_type;                 // CUgraphNodeType
  void* graph_exec;              // CUgraphExec
};

// What a listener may want; `set_wanted` takes the sum.
enum Wanted : std::uint32_t {
  kWantRuntimeApi = 1U << 0,
  kWantDriverApi = 1U << 1,
  kWantOperations = 1U << 2,
  kWantSyncs = 1U << 3,
  kWantMemory = 1U << 4,
  kWantResources = 1U << 5,
  kWantSymbols = 1U << 6  // ApiCall::symbol_name, a look-up for each launch
};

// A table of functions, each may be null. They are called [any thread] that calls CUDA, or the
// core's timer thread; never with a lock of the core held except where said.
struct Listener {
  // Around each API call, on its thread.
  void (*api_enter)(ApiCall& call);
  void (*api_exit)(ApiCall& call);
  // When an operation is queued, before its call returns. Runs with the core's lock held: it
  // must not call into the core. What it returns comes back as `tag`, so that what was
  // enabled is latched when the operation is queued.
  std::uint64_t (*operation_queued)(const OperationRecord& operation);
  // When the operation has ended in simulated time, in order of end per stream. One thread at a
  // time. An operation that never ends is never delivered.
  void (*operation_finished)(const OperationRecord& operation);
  // After a blocking call has ended (or at once for stream_wait_event), on its thread.
  void (*synchronised)(const SyncRecord& sync);
  void (*memory_changed)(const MemoryRecord& memory);
  void (*resource_changed)(const ResourceRecord& resource);
};

// Registers the one listener of the process for ever (a second call replaces the first). The
// table must outlive the process. [any thread]
void set_listener(const Listener* listener) noexcept;

// Chooses the notices to be delivered from now on: a sum of Wanted. [any thread]
void set_wanted(std::uint32_t wanted) noexcept;

// Narrows kWantRuntimeApi and kWantDriverApi to single functions: programs call dozens of functions
// for each that a tool asked for, and those must cost nothing. At first every function is in. [any thread]
void set_wanted_call(ApiDomain domain, std::uint32_t cbid, bool wanted) noexcept;

// Delivers every operation that has ended by now, and returns when they are delivered, those
// another thread is delivering included. Not to be called from a listener function.
void deliver_finished();

// CLOCK_MONOTONIC, the time base of the simulation. [any thread]
std::int64_t now_ns() noexcept;

// The device's clock at the host time `host_ns`. The identity unless the fault "clock" is set.
std::int64_t device_clock_ns(std::uint32_t device_id, std::int64_t host_ns) noexcept;

// A correlation id of the same sequence the API calls draw from. [any thread]
std::uint32_t next_correlation_id() noexcept;

// The correlation id of the API call this thread is inside, 0 outside calls.
std::uint32_t current_correlation_id() noexcept;

// Name of an API function without the version suffix of its id, or null. Static storage.
const char* api_name(ApiDomain domain, std::uint32_t cbid) noexcept;

// True when a runtime or driver call of this process has initialised the simulated driver.
bool driver_initialised() noexcept;

// Ids behind handles, for cuptiGetContextId, cuptiGetStreamIdEx, cuptiGetGraphId and others.
// 0 (0xffffffff for streams) for a handle that is not known. A null context means the current
// one. [any thread]
std::uint32_t context_uid(void* context) noexcept;
std::uint32_t context_device(void* context) noexcept;
std::uint32_t stream_id(void* context, void* stream, bool per_thread_default) noexcept;
std::uint32_t graph_id(void* graph) noexcept;
std::uint32_t graph_exec_id(void* graph_exec) noexcept;
std::uint64_t graph_node_id(void* node) noexcept;
void* current_context() noexcept;

// What a device looks like, for CUpti_ActivityDevice5 and NVML.
struct DeviceDescription {
  const char* name;
  std::uint64_t memory_bytes;
  std::uint64_t memory_bandwidth_bytes_per_s;
  std::uint32_t multiprocessors;
  std::uint32_t core_clock_khz;
  std::uint32_t compute_major;
  std::uint32_t compute_minor;
  std::uint32_t l2_bytes;
  std::uint8_t uuid[16];
  std::uint32_t pci_bus_id;
};

std::uint32_t device_count() noexcept;
const DeviceDescription& device_description(std::uint32_t device_id) noexcept;
// Bytes allocated on the device now. [any thread]
std::uint64_t device_memory_used(std::uint32_t device_id) noexcept;
// Total time in [0, now] in which at least one kernel ran on the device, for utilisation, ns.
std::int64_t device_busy_ns(std::uint32_t device_id) noexcept;

}  // namespace simgpu
