// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and stream capture.
#include "driver/entry.hpp"

#include "core/notices.hpp"

namespace {

CUresult make_stream(CUstream* out, unsigned flags, int priority) {
  Context* context = driver_context();
  if (out == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (const int error = check_unsafe_call()) return as_result(error);
  const StreamKind kind =
      flags == CU_STREAM_NON_BLOCKING ? StreamKind::non_blocking : StreamKind::blocking;
  *out = reinterpret_cast<CUstream>(create_stream(*context, kind, priority));
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace

SIMGPU_DRIVER(cuStreamCreate) {
  return make_stream(p.phStream, p.Flags, 0);
}
SIMGPU_DRIVER(cuStreamCreateWithPriority) {
  return make_stream(p.phStream, p.flags, p.priority);
}

SIMGPU_DRIVER(cuStreamDestroy_v2) {
  if (reinterpret_cast<std::uintptr_t>(p.hStream) <= 2) return CUDA_ERROR_INVALID_HANDLE;
  return with_stream(p.hStream, [](Stream& stream) {
    if (listener_wants(kWantResources)) {
      ResourceRecord record{};
      record.event = ResourceEvent::stream_destroy_starting;
      record.context = stream.context;
      record.context_uid = stream.context->uid;
      record.device_id = stream.context->device->id;
      record.stream = &stream;
      record.stream_id = stream.id;
      notify_resource(record);
    }
    const Lock guard = Engine::get().lock();
    destroy_stream(stream);
    return 0;
  });
}

SIMGPU_DRIVER(cuStreamSynchronize) {
  return with_stream(p.hStream, synchronize_stream);
}
SIMGPU_DRIVER(cuStreamQuery) {
  return with_stream(p.hStream, query_stream);
}

SIMGPU_DRIVER(cuStreamWaitEvent) {
  return with_stream(p.hStream, [&](Stream& stream) {
    return with_event(p.hEvent, [&](Event& event) { return stream_wait_event(stream, event); });
  });
}

SIMGPU_DRIVER(cuStreamGetPriority) {
  return with_stream(p.hStream, [&](Stream& stream) {
    *p.priority = stream.priority;
    return 0;
  });
}

SIMGPU_DRIVER(cuStreamGetFlags) {
  return with_stream(p.hStream, [&](Stream& stream) {
    *p.flags = stream.kind == StreamKind::non_blocking ? CU_STREAM_NON_BLOCKING : 0;
    return 0;
  });
}

SIMGPU_DRIVER(cuStreamGetCtx) {
  return with_stream(p.hStream, [&](Stream& stream) {
    *p.pctx = reinterpret_cast<CUcontext>(stream.context);
    return 0;
  });
}

SIMGPU_DRIVER(cuStreamGetId) {
  return with_stream(p.hStream, [&](Stream& stream) {
    *p.streamId = (std::uint64_t{stream.context->uid} << 32) | stream.id;
    return 0;
  });
}

SIMGPU_DRIVER(cuStreamIsCapturing) {
  if (p.captureStatus == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(p.hStream, [&](Stream& stream) {
    const Lock guard = Engine::get().lock();
    *p.captureStatus = status_of(stream);
    return 0;
  });
}

SIMGPU_DRIVER(cuStreamGetCaptureInfo_v2) {
  if (p.captureStatus_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_stream(p.hStream, [&](Stream& stream) {
    const Lock guard = Engine::get().lock();
    *p.captureStatus_out = status_of(stream);
    if (*p.captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE) return 0;
    if (p.id_out != nullptr) *p.id_out = stream.capture->id;
    if (p.graph_out != nullptr) *p.graph_out = reinterpret_cast<CUgraph>(stream.capture->graph);
    if (p.dependencies_out != nullptr) {
      *p.dependencies_out = reinterpret_cast<const CUgraphNode*>(stream.capture_front.data());
    }
    if (p.numDependencies_out != nullptr) *p.numDependencies_out = stream.capture_front.size();
    return 0;
  });
}

SIMGPU_DRIVER(cuThreadExchangeStreamCaptureMode) {
  if (p.mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int before = std::exchange(thread_state().capture_mode, static_cast<int>(*p.mode));
  *p.mode = static_cast<CUstreamCaptureMode>(before);
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuEventCreate) {
  Context* context = driver_context();
  if (p.phEvent == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *p.phEvent = reinterpret_cast<CUevent>(create_event(*context, p.Flags));
  return CUDA_SUCCESS;
}

SIMGPU_DRIVER(cuEventDestroy_v2) {
  return with_event(p.hEvent, destroy_event);
}
SIMGPU_DRIVER(cuEventQuery) {
  return with_event(p.hEvent, query_event);
}
SIMGPU_DRIVER(cuEventSynchronize) {
  return with_event(p.hEvent, synchronize_event);
}

SIMGPU_DRIVER(cuEventRecord) {
  return with_stream(p.hStream, [&](Stream& stream) {
    return with_event(p.hEvent, [&](Event& event) { return record_event(event, stream); });
  });
}

SIMGPU_DRIVER(cuEventElapsedTime_v2) {
  Event* start = find_event(p.hStart);
  Event* end = find_event(p.hEnd);
  if (p.pMilliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::int64_t ns = 0;
  const int error = elapsed_ns(*start, *end, ns);
  if (error == 0) *p.pMilliseconds = static_cast<float>(static_cast<double>(ns) * 1e-6);
  return as_result(error);
}
