// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/decode.hpp"

#include <algorithm>

namespace gpudiag {
namespace {

// CUPTI of CUDA 12.8: synchronisation and event records grew an id that joins them.
constexpr std::uint32_t kApiWithSyncIds = 26;
constexpr std::uint32_t kNotReady = 600;  // cudaErrorNotReady, CUDA_ERROR_NOT_READY: an answer, no failure

template <typename Struct>
const Struct& as(const CUpti_Activity& activity) {
  return reinterpret_cast<const Struct&>(activity);
}

CopyKind copy_kind(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return CopyKind::kHostToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return CopyKind::kDeviceToHost;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA: return CopyKind::kDeviceToDevice;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return CopyKind::kPeer;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return CopyKind::kHostToHost;
    default: return CopyKind::kUnknown;
  }
}

SyncKind sync_kind(CUpti_ActivitySynchronizationType type) {
  switch (type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE: return SyncKind::kEvent;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT: return SyncKind::kStreamWaitsEvent;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE: return SyncKind::kStream;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE: return SyncKind::kContext;
    default: return SyncKind::kUnknown;
  }
}

std::uint64_t shape_hash(const CUpti_ActivityKernel10& kernel) {
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  for (const std::int32_t size :
       {kernel.gridX, kernel.gridY, kernel.gridZ, kernel.blockX, kernel.blockY, kernel.blockZ}) {
    hash ^= static_cast<std::uint32_t>(size);
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

bool is_ours(CUpti_ActivityOverheadKind kind) {
  return kind == CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH ||
         kind == CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION || kind == CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE ||
         kind == CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST;
}

template <typename Operation>
Record operation_record(RecordKind kind, const Operation& operation) {
  Record record;
  record.kind = kind;
  record.device = DeviceId{operation.deviceId};
  record.context = ContextId{operation.contextId};
  record.stream = StreamId{operation.streamId};
  record.correlation = CorrelationId{operation.correlationId};
  record.graph = GraphId{operation.graphId};
  return record;
}

std::uint16_t copy_flags(std::uint8_t source, std::uint8_t target, std::uint8_t flags) {
  std::uint16_t result = 0;
  if (source == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE || target == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE)
    result |= record_flag::kPageable;
  if ((flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0) result |= record_flag::kAsync;
  return result;
}

}  // namespace

ActivityDecoder::ActivityDecoder(const CuptiTable& cupti, NameTable& names)
    : cupti_{cupti}, names_{names}, kernel_names_{names}, calls_(kCallsKept), events_(kEventsKept) {}

bool ActivityDecoder::decode(const BufferPool::Filled& buffer, const ClockMap& clock, RecordSink& sink) {
  CUpti_Activity* activity = nullptr;
  CUptiResult result = CUPTI_SUCCESS;
  while ((result = cupti_.next_record(buffer.data, buffer.valid_bytes, &activity)) == CUPTI_SUCCESS)
    add(*activity, clock, sink);
  // The end of what was written, in a full buffer and in one that was flushed.
  return buffer.valid_bytes == 0 || result == CUPTI_ERROR_MAX_LIMIT_REACHED || result == CUPTI_ERROR_INVALID_KIND;
}

std::uint64_t ActivityDecoder::first_call_time(const BufferPool::Filled& buffer) const {
  CUpti_Activity* activity = nullptr;
  while (cupti_.next_record(buffer.data, buffer.valid_bytes, &activity) == CUPTI_SUCCESS)
    if (activity->kind == CUPTI_ACTIVITY_KIND_RUNTIME || activity->kind == CUPTI_ACTIVITY_KIND_DRIVER)
      if (const auto start = as<CUpti_ActivityAPI>(*activity).start; start != 0) return start;
  return 0;
}

void ActivityDecoder::add(const CUpti_Activity& activity, const ClockMap& clock, RecordSink& sink) {
  switch (activity.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return add_kernel(as<CUpti_ActivityKernel10>(activity), clock, sink);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return add_memcpy(as<CUpti_ActivityMemcpy6>(activity), clock, sink);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return add_peer_copy(as<CUpti_ActivityMemcpyPtoP4>(activity), clock, sink);
    case CUPTI_ACTIVITY_KIND_MEMSET: return add_memset(as<CUpti_ActivityMemset4>(activity), clock, sink);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return add_graph(as<CUpti_ActivityGraphTrace2>(activity), clock, sink);
    case CUPTI_ACTIVITY_KIND_RUNTIME: return add_call(as<CUpti_ActivityAPI>(activity), false, clock, sink);
    case CUPTI_ACTIVITY_KIND_DRIVER: return add_call(as<CUpti_ActivityAPI>(activity), true, clock, sink);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return add_sync(as<CUpti_ActivitySynchronization2>(activity), clock);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return add_event(as<CUpti_ActivityCudaEvent2>(activity));
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return add_overhead(as<CUpti_ActivityOverhead3>(activity), clock, sink);
    case CUPTI_ACTIVITY_KIND_MARKER:
      if (take_range_) markers_.add(as<CUpti_ActivityMarker2>(activity), clock, take_range_);
      else ++counts_.others;
      return;
    default: ++counts_.others;  // enabled by somebody else
  }
}

void ActivityDecoder::set_times(Record& record, std::uint64_t start, std::uint64_t end, const ClockMap& clock) {
  if (start == 0 && end == 0) {  // documented: could not be timed
    record.flags |= record_flag::kUntimed;
    return;
  }
  const ClockMap::Converted from = clock.to_session(static_cast<std::int64_t>(start));
  record.start = record.end = from.time;
  bool certain = from.certain;
  if (end == 0) {
    record.flags |= record_flag::kIncomplete;
  } else {
    const ClockMap::Converted to = clock.to_session(static_cast<std::int64_t>(end));
    record.end = to.time;
    certain = certain && to.certain;
  }
  if (certain) return;
  record.flags |= record_flag::kForeignClock;
  ++counts_.uncertain;
}

void ActivityDecoder::emit_operation(const Record& record, RecordSink& sink) {
  ++counts_.operations;
  if (record.context != last_context_) {
    last_context_ = record.context;
    if (context_devices_.size() < kContextsKept) context_devices_.insert_or_assign(raw(record.context), record.device);
  }
  sink.add(record);
}

void ActivityDecoder::add_kernel(const CUpti_ActivityKernel10& kernel, const ClockMap& clock, RecordSink& sink) {
  Record record = operation_record(RecordKind::kKernel, kernel);
  record.name = kernel_names_.of(kernel.name);
  record.value = shape_hash(kernel);
  set_times(record, kernel.start, kernel.end, clock);
  emit_operation(record, sink);
}

void ActivityDecoder::add_memcpy(const CUpti_ActivityMemcpy6& copy, const ClockMap& clock, RecordSink& sink) {
  Record record = operation_record(RecordKind::kMemcpy, copy);
  record.value = copy.bytes;
  record.copy = copy_kind(copy.copyKind);
  record.flags = copy_flags(copy.srcKind, copy.dstKind, copy.flags);
  set_times(record, copy.start, copy.end, clock);
  emit_operation(record, sink);
}

void ActivityDecoder::add_peer_copy(const CUpti_ActivityMemcpyPtoP4& copy, const ClockMap& clock, RecordSink& sink) {
  Record record = operation_record(RecordKind::kMemcpy, copy);
  record.value = copy.bytes;
  record.copy = CopyKind::kPeer;
  record.flags = copy_flags(copy.srcKind, copy.dstKind, copy.flags);
  set_times(record, copy.start, copy.end, clock);
  emit_operation(record, sink);
}

void ActivityDecoder::add_memset(const CUpti_ActivityMemset4& set, const ClockMap& clock, RecordSink& sink) {
  Record record = operation_record(RecordKind::kMemset, set);
  record.value = set.bytes;
  if ((set.flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) != 0) record.flags |= record_flag::kAsync;
  set_times(record, set.start, set.end, clock);
  emit_operation(record, sink);
}

void ActivityDecoder::add_graph(const CUpti_ActivityGraphTrace2& graph, const ClockMap& clock, RecordSink& sink) {
  Record record = operation_record(RecordKind::kGraph, graph);
  set_times(record, graph.start, graph.end, clock);
  emit_operation(record, sink);
}

const ActivityDecoder::Function& ActivityDecoder::function(CUpti_CallbackDomain domain, std::uint32_t callback) {
  static const Function kUnknown{};
  constexpr std::uint32_t kLimit = 16'384;
  if (callback >= kLimit) return kUnknown;
  auto& functions = functions_[domain == CUPTI_CB_DOMAIN_RUNTIME_API ? 1 : 0];
  if (callback >= functions.size()) functions.resize(callback + 1);
  Function& function = functions[callback];
  if (function.known) return function;
  function.known = true;
  function.traits.flags = domain == CUPTI_CB_DOMAIN_DRIVER_API ? record_flag::kDriverApi : std::uint16_t{0};
  const char* text = nullptr;
  if (cupti_.callback_name != nullptr && cupti_.callback_name(domain, callback, &text) == CUPTI_SUCCESS &&
      text != nullptr) {
    function.traits = api_traits(text);
    function.name = names_.intern(plain_api_name(text));
  }
  return function;
}

void ActivityDecoder::add_call(const CUpti_ActivityAPI& call, bool driver, const ClockMap& clock, RecordSink& sink) {
  const Function& called = function(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, call.cbid);
  Record record;
  record.kind = RecordKind::kApiCall;
  record.api = called.traits.api;
  record.flags = called.traits.flags;
  if (driver) record.flags |= record_flag::kDriverApi;
  if (call.returnValue != 0 && call.returnValue != kNotReady) record.flags |= record_flag::kFailed;
  record.name = called.name;
  record.thread = ThreadId{call.threadId};
  record.correlation = CorrelationId{call.correlationId};
  set_times(record, call.start, call.end, clock);
  ++counts_.calls;
  const bool launches = record.api == ApiClass::kLaunch || record.api == ApiClass::kGraphLaunch;
  if (launches && !record.has(record_flag::kFailed)) ++counts_.launches;
  note_call(record);
  sink.add(record);
}

void ActivityDecoder::note_call(const Record& call) {
  // A runtime call and the driver call inside it share their id; the outer one is the caller's.
  Call& kept = calls_[raw(call.correlation) % kCallsKept];
  if (!call.has(record_flag::kDriverApi) || kept.correlation != call.correlation)
    kept = {call.correlation, call.thread, call.start, call.end};
}

const ActivityDecoder::Call* ActivityDecoder::find_call(CorrelationId correlation) const {
  const Call& call = calls_[raw(correlation) % kCallsKept];
  return call.correlation == correlation && correlation != kNoCorrelation ? &call : nullptr;
}

void ActivityDecoder::add_sync(const CUpti_ActivitySynchronization2& sync, const ClockMap& clock) {
  Record record;
  record.kind = RecordKind::kSync;
  record.sync = sync_kind(sync.type);
  record.context = ContextId{sync.contextId};
  if (sync.streamId != CUPTI_SYNCHRONIZATION_INVALID_VALUE) record.stream = StreamId{sync.streamId};
  record.correlation = CorrelationId{sync.correlationId};
  if (sync.cudaEventId != CUPTI_SYNCHRONIZATION_INVALID_VALUE) record.value = sync.cudaEventId;
  set_times(record, sync.start, sync.end, clock);
  std::uint64_t sync_id = cupti_.api_version >= kApiWithSyncIds ? sync.cudaEventSyncId : 0;
  if (sync_id == CUPTI_SYNCHRONIZATION_INVALID_VALUE) sync_id = 0;
  if (waiting_.size() < kWaitingLimit) waiting_.push_back({record, sync_id, false});
}

void ActivityDecoder::add_event(const CUpti_ActivityCudaEvent2& event) {
  Record record;
  record.kind = RecordKind::kEventRecord;
  record.device = cupti_.api_version >= kApiWithSyncIds ? DeviceId{event.deviceId} : kNoDevice;
  record.context = ContextId{event.contextId};
  record.stream = StreamId{event.streamId};
  record.correlation = CorrelationId{event.correlationId};
  record.value = event.eventId;
  if (cupti_.api_version >= kApiWithSyncIds)
    events_[event.cudaEventSyncId % kEventsKept] = {event.cudaEventSyncId, record.correlation};
  if (waiting_.size() < kWaitingLimit) waiting_.push_back({record, 0, false});
}

void ActivityDecoder::finish_round(RecordSink& sink) {
  std::vector<Waiting> later;
  for (Waiting& w : waiting_) {
    const Call* call = find_call(w.record.correlation);
    const EventRecord& event = events_[w.sync_id % kEventsKept];
    const bool event_known = w.sync_id == 0 || event.sync_id == w.sync_id;
    // These records name a context and no device; the operations of the context tell which it is.
    if (w.record.device == kNoDevice)
      if (const auto found = context_devices_.find(raw(w.record.context)); found != context_devices_.end())
        w.record.device = found->second;
    if ((call == nullptr || !event_known || w.record.device == kNoDevice) && !w.waited) {
      w.waited = true;
      later.push_back(w);
      continue;
    }
    if (w.record.device == kNoDevice) w.record.stream = kNoStream;  // a stream of nowhere would be another one
    if (call != nullptr) w.record.thread = call->thread;
    if (w.sync_id != 0 && event_known) w.record.value2 = raw(event.correlation);
    if (w.record.kind == RecordKind::kEventRecord) {
      // The record itself has no time; without its call it can be put in no order and helps nobody.
      if (call == nullptr) continue;
      w.record.start = w.record.end = call->start;
    }
    sink.add(w.record);
  }
  waiting_ = std::move(later);
  markers_.finish_round();
}

void ActivityDecoder::add_overhead(const CUpti_ActivityOverhead3& overhead, const ClockMap& clock, RecordSink& sink) {
  if (!is_ours(overhead.overheadKind)) return;  // module loading and the like: the job's own
  Record record;
  record.kind = RecordKind::kOwn;
  if (overhead.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD) record.thread = ThreadId{overhead.objectId.pt.threadId};
  set_times(record, overhead.start, overhead.end, clock);
  sink.add(record);
}

}  // namespace gpudiag
