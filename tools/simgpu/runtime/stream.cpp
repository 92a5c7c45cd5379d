// SPDX-License-Identifier: Apache-2.0
//
// Streams and events.
#include "runtime/entry.hpp"

#include <algorithm>

#include "core/notices.hpp"

namespace {

// Hopper's range; a lower number is a higher priority.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

cudaError_t make_stream(cudaStream_t* out, unsigned flags, int priority) {
  if (out == nullptr || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
  if (const int error = check_unsafe_call()) return as_error(error);
  Context* context = require_context();
  const StreamKind kind =
      flags == cudaStreamNonBlocking ? StreamKind::non_blocking : StreamKind::blocking;
  priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  *out = reinterpret_cast<cudaStream_t>(create_stream(*context, kind, priority));
  return cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* out, unsigned flags) {
  constexpr unsigned kKnown =
      cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  if (out == nullptr || (flags & ~kKnown) != 0) return cudaErrorInvalidValue;
  *out = reinterpret_cast<cudaEvent_t>(create_event(*require_context(), flags));
  return cudaSuccess;
}

}  // namespace

SIMGPU_RUNTIME(cudaStreamCreate) {
  return make_stream(p.pStream, 0, 0);
}
SIMGPU_RUNTIME(cudaStreamCreateWithFlags) {
  return make_stream(p.pStream, p.flags, 0);
}
SIMGPU_RUNTIME(cudaStreamCreateWithPriority) {
  return make_stream(p.pStream, p.flags, p.priority);
}

SIMGPU_RUNTIME(cudaStreamDestroy) {
  if (reinterpret_cast<std::uintptr_t>(p.stream) <= 2) return cudaErrorInvalidResourceHandle;
  return with_stream(p.stream, [](Stream& stream) {
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
    if (stream.capture != nullptr) {
      stream.capture->invalid = true;
      return static_cast<int>(cudaErrorStreamCaptureUnsupported);
    }
    destroy_stream(stream);
    return 0;
  });
}

SIMGPU_RUNTIME(cudaStreamSynchronize) {
  return with_stream(p.stream, synchronize_stream);
}
SIMGPU_RUNTIME(cudaStreamQuery) {
  return with_stream(p.stream, query_stream);
}

SIMGPU_RUNTIME(cudaStreamWaitEvent) {
  return with_stream(p.stream, [&](Stream& stream) {
    return with_event(p.event, [&](Event& event) { return stream_wait_event(stream, event); });
  });
}

SIMGPU_RUNTIME(cudaStreamGetFlags) {
  return with_stream(p.hStream, [&](Stream& stream) {
    *p.flags = stream.kind == StreamKind::non_blocking ? cudaStreamNonBlocking : 0;
    return 0;
  });
}

SIMGPU_RUNTIME(cudaStreamGetPriority) {
  return with_stream(p.hStream, [&](Stream& stream) {
    *p.priority = stream.priority;
    return 0;
  });
}

SIMGPU_RUNTIME(cudaStreamGetId) {
  return with_stream(p.hStream, [&](Stream& stream) {
    // Unique in the process, as the documentation asks.
    *p.streamId = (std::uint64_t{stream.context->uid} << 32) | stream.id;
    return 0;
  });
}

SIMGPU_RUNTIME(cudaStreamGetDevice) {
  return with_stream(p.hStream, [&](Stream& stream) {
    *p.device = static_cast<int>(stream.context->device->id);
    return 0;
  });
}

// Where managed memory is attached to makes no difference to the simulation.
SIMGPU_RUNTIME(cudaStreamAttachMemAsync) {
  return with_stream(p.stream, [](Stream&) { return 0; });
}

SIMGPU_RUNTIME(cudaDeviceGetStreamPriorityRange) {
  if (p.leastPriority != nullptr) *p.leastPriority = kLeastPriority;
  if (p.greatestPriority != nullptr) *p.greatestPriority = kGreatestPriority;
  return cudaSuccess;
}

SIMGPU_RUNTIME(cudaEventCreate) {
  return make_event(p.event, 0);
}
SIMGPU_RUNTIME(cudaEventCreateWithFlags) {
  return make_event(p.event, p.flags);
}
SIMGPU_RUNTIME(cudaEventDestroy) {
  return with_event(p.event, destroy_event);
}
SIMGPU_RUNTIME(cudaEventQuery) {
  return with_event(p.event, query_event);
}
SIMGPU_RUNTIME(cudaEventSynchronize) {
  return with_event(p.event, synchronize_event);
}

SIMGPU_RUNTIME(cudaEventRecord) {
  return with_stream(p.stream, [&](Stream& stream) {
    return with_event(p.event, [&](Event& event) { return record_event(event, stream); });
  });
}

SIMGPU_RUNTIME(cudaEventRecordWithFlags) {
  if (p.flags != 0 && p.flags != cudaEventRecordExternal) return cudaErrorInvalidValue;
  return with_stream(p.stream, [&](Stream& stream) {
    return with_event(p.event, [&](Event& event) { return record_event(event, stream); });
  });
}

SIMGPU_RUNTIME(cudaEventElapsedTime) {
  Event* start = find_event(p.start);
  Event* end = find_event(p.end);
  if (p.ms == nullptr) return cudaErrorInvalidValue;
  if (start == nullptr || end == nullptr) return cudaErrorInvalidResourceHandle;
  std::int64_t ns = 0;
  const int error = elapsed_ns(*start, *end, ns);
  if (error == 0) *p.ms = static_cast<float>(static_cast<double>(ns) * 1e-6);
  return as_error(error);
}
