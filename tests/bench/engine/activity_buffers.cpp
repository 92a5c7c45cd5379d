// SPDX-License-Identifier: Apache-2.0
#include "activity_buffers.hpp"

#include <cstring>

namespace gpudiag::bench {
namespace {

std::size_t size_of(const CUpti_Activity* activity) {
  switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
    default: return sizeof(CUpti_ActivityAPI);
  }
}

CUptiResult CUPTIAPI next_record(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* at = buffer;
  if (*record != nullptr) at = reinterpret_cast<std::uint8_t*>(*record) + size_of(*record);
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}

struct Call {
  ApiClass api;
  std::uint32_t callback;
  const char* name;
};

constexpr Call kCalls[] = {
    {ApiClass::kLaunch, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel_v7000"},
    {ApiClass::kMemcpyAsync, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, "cudaMemcpyAsync_v3020"},
    {ApiClass::kStreamSync, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, "cudaStreamSynchronize_v3020"},
    {ApiClass::kEventRecord, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, "cudaEventRecord_v3020"},
    {ApiClass::kStreamWait, CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020, "cudaStreamWaitEvent_v3020"},
};

CUptiResult CUPTIAPI callback_name(CUpti_CallbackDomain, std::uint32_t id, const char** name) {
  for (const Call& call : kCalls)
    if (call.callback == id) {
      *name = call.name;
      return CUPTI_SUCCESS;
    }
  return CUPTI_ERROR_INVALID_PARAMETER;
}

std::uint64_t stamp(TimePoint time) {
  return static_cast<std::uint64_t>(time.ns);
}

template <typename Activity>
Activity blank(CUpti_ActivityKind kind) {
  Activity activity;
  std::memset(static_cast<void*>(&activity), 0, sizeof activity);
  activity.kind = kind;
  return activity;
}

template <typename Activity>
void place(Activity& activity, const Record& record) {
  activity.start = stamp(record.start);
  activity.end = stamp(record.end);
  activity.deviceId = raw(record.device);
  activity.contextId = raw(record.context);
  activity.streamId = raw(record.stream);
  activity.correlationId = raw(record.correlation);
}

}  // namespace

CuptiTable activity_table() {
  CuptiTable table;
  table.next_record = next_record;
  table.callback_name = callback_name;
  table.api_version = 130001;
  return table;
}

template <typename Activity>
void ActivityBuffers::append(const Activity& activity) {
  if (used_ == 0 || filled_[used_ - 1].size() + sizeof activity > kActivityBufferBytes) {
    if (used_ == filled_.size()) filled_.emplace_back().reserve(kActivityBufferBytes);
    filled_[used_++].clear();
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&activity);
  auto& buffer = filled_[used_ - 1];
  buffer.insert(buffer.end(), bytes, bytes + sizeof activity);
  ++activities_;
}

const char* ActivityBuffers::symbol(NameId name) {
  const auto [entry, added] = symbols_.try_emplace(raw(name));
  if (added) entry->second = names_.text(name);
  return entry->second.c_str();
}

void ActivityBuffers::add_kernel(const Record& record) {
  auto kernel = blank<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  place(kernel, record);
  kernel.name = symbol(record.name);
  kernel.gridX = 128;
  kernel.blockX = 256;
  kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
  append(kernel);
}

void ActivityBuffers::add_copy(const Record& record) {
  auto copy = blank<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  place(copy, record);
  copy.bytes = record.value;
  copy.copyKind = record.copy == CopyKind::kDeviceToHost ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                                                         : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
  copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  append(copy);
}

void ActivityBuffers::add_call(const Record& record) {
  auto activity = blank<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
  for (const Call& call : kCalls)
    if (call.api == record.api) activity.cbid = call.callback;
  activity.start = stamp(record.start);
  activity.end = stamp(record.end);
  activity.threadId = raw(record.thread);
  activity.correlationId = raw(record.correlation);
  append(activity);
}

void ActivityBuffers::add_wait(const Record& record) {
  if (record.sync != SyncKind::kStream) return;
  auto wait = blank<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  wait.start = stamp(record.start);
  wait.end = stamp(record.end);
  wait.contextId = raw(record.context);
  wait.streamId = raw(record.stream);
  wait.correlationId = raw(record.correlation);
  wait.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  append(wait);
}

void ActivityBuffers::fill(const std::vector<Record>& records) {
  used_ = 0;
  activities_ = 0;
  for (const Record& record : records) {
    if (record.kind == RecordKind::kKernel) add_kernel(record);
    else if (record.kind == RecordKind::kMemcpy) add_copy(record);
    else if (record.kind == RecordKind::kApiCall) add_call(record);
    else if (record.kind == RecordKind::kSync) add_wait(record);
  }
}

std::vector<BufferPool::Filled> ActivityBuffers::buffers() {
  std::vector<BufferPool::Filled> result;
  for (std::size_t i = 0; i < used_; ++i) result.push_back({filled_[i].data(), filled_[i].size()});
  return result;
}

}  // namespace gpudiag::bench
