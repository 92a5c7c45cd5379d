// SPDX-License-Identifier: Apache-2.0
#include "sync.hpp"

#include <atomic>
#include <deque>

#include "engine.hpp"
#include "graph.hpp"
#include "memory.hpp"
#include "notices.hpp"
#include "thread_state.hpp"
#include "work.hpp"

namespace simgpu {
namespace {

constexpr int kInvalidHandle = 400;
constexpr int kNotReady = 600;
constexpr int kUnsupportedInCapture = 900;
constexpr int kInvalidated = 901;
constexpr int kCapturedEvent = 907;
constexpr unsigned kDisableTiming = 2;
constexpr std::uint32_t kNone = 0xffffffff;

SyncRecord sync_record(SyncKind kind, Context& context) {
  SyncRecord record{};
  record.kind = kind;
  record.correlation_id = thread_state().correlation_id;
  record.context_uid = context.uid;
  record.context = &context;
  record.stream_id = kNone;
  record.event_id = kNone;
  record.start_ns = now_ns();
  return record;
}

void tell(SyncRecord& record, int result) {
  if (!listener_wants(kWantSyncs)) return;
  record.end_ns = now_ns();
  record.return_value = static_cast<std::uint32_t>(result);
  notify_sync(record);
}

// Destroyed events rest here for a while, so that a late use of a handle is an error, not a crash.
constexpr std::size_t kQuarantine = 4096;
std::deque<Event*>& retired_events() {
  static auto* const kEvents = new std::deque<Event*>;
  return *kEvents;
}

void set_stream(SyncRecord& record, Stream& stream) {
  record.stream_id = stream.id;
  record.stream = stream.kind == StreamKind::legacy ? nullptr : &stream;
}

void set_event(SyncRecord& record, const Event& event) {
  record.event_id = event.id;
  record.event_sync_id = event.sync_id;
}

}  // namespace

Event* find_event(void* handle) {
  auto* event = static_cast<Event*>(handle);
  return event != nullptr && event->magic == kEventMagic ? event : nullptr;
}

Event* create_event(Context& context, unsigned flags) {
  static std::atomic<std::uint32_t> ids{0};  // relaxed: a counter
  Event* event = nullptr;
  {
    const Lock guard = Engine::get().lock();
    if (retired_events().size() > kQuarantine) {
      event = retired_events().front();
      retired_events().pop_front();
      *event = Event{};
    } else {
      event = new Event;
    }
  }
  event->id = ids.fetch_add(1, std::memory_order_relaxed) + 1;
  event->flags = flags;
  event->context = &context;
  return event;
}

int destroy_event(Event& event) {
  const Lock guard = Engine::get().lock();
  Engine::get().release(event.record);
  event.record = nullptr;
  event.capture = nullptr;
  event.magic = 0;
  retired_events().push_back(&event);
  return 0;
}

int record_event(Event& event, Stream& stream) {
  if (event.context->device != stream.context->device) return kInvalidHandle;
  return submit(stream, EventRecordWork{&event});
}

int stream_wait_event(Stream& stream, Event& event) {
  SyncRecord record = sync_record(SyncKind::stream_wait_event, *stream.context);
  bool recorded = false;
  {
    const Lock guard = Engine::get().lock();
    if (event.capture != nullptr || stream.capture != nullptr) {
      return stream.capture != nullptr && stream.capture->invalid ? kInvalidated
                                                                  : capture_wait(stream, event);
    }
    set_stream(record, stream);
    set_event(record, event);
    recorded = event.record != nullptr;
  }
  const int result = !recorded ? 0 : submit(stream, EventWaitWork{&event});
  tell(record, result);
  return result;
}

int query_event(Event& event) {
  Engine& engine = Engine::get();
  const Lock guard = engine.lock();
  if (event.capture != nullptr) return kCapturedEvent;
  if (!Engine::done(event.record, now_ns())) return kNotReady;
  engine.retire(now_ns());
  return event.context->device->sticky_error;
}

int synchronize_event(Event& event) {
  SyncRecord record = sync_record(SyncKind::event_synchronize, *event.context);
  int result = 0;
  {
    Lock guard = Engine::get().lock();
    if (event.capture != nullptr) {
      event.capture->invalid = true;
      return kCapturedEvent;
    }
    set_event(record, event);
    if (event.stream != nullptr) set_stream(record, *event.stream);
    result = Engine::get().wait(guard, event.record, "event_synchronize");
  }
  tell(record, result);
  return result;
}

int elapsed_ns(Event& start, Event& end, std::int64_t& out) {
  const Lock guard = Engine::get().lock();
  if (((start.flags | end.flags) & kDisableTiming) != 0) return kInvalidHandle;
  if (start.record == nullptr || end.record == nullptr) return kInvalidHandle;
  const std::int64_t now = now_ns();
  if (!Engine::done(start.record, now) || !Engine::done(end.record, now)) return kNotReady;
  const auto clock = [](const Event& event) {
    return device_clock_ns(event.context->device->id, event.record->end_ns);
  };
  out = clock(end) - clock(start);
  return 0;
}

int query_stream(Stream& stream) {
  Engine& engine = Engine::get();
  const Lock guard = engine.lock();
  if (stream.capture != nullptr) {
    stream.capture->invalid = true;
    return kUnsupportedInCapture;
  }
  const std::int64_t now = now_ns();
  engine.retire(now);
  if (!Engine::idle(stream, now)) return kNotReady;
  std::vector<Stream*> others;
  if (stream.kind == StreamKind::legacy) engine.implicit_streams(stream, others);
  for (const Stream* other : others) {
    if (!Engine::idle(*other, now)) return kNotReady;
  }
  return stream.context->device->sticky_error;
}

int synchronize_stream(Stream& stream) {
  Engine& engine = Engine::get();
  SyncRecord record = sync_record(SyncKind::stream_synchronize, *stream.context);
  set_stream(record, stream);
  int result = 0;
  {
    Lock guard = engine.lock();
    if (stream.capture != nullptr) {
      stream.capture->invalid = true;
      return kUnsupportedInCapture;
    }
    if (const int error = check_implicit_capture(stream)) return error;
    std::vector<Stream*> streams{&stream};
    if (stream.kind == StreamKind::legacy) engine.implicit_streams(stream, streams);
    result = engine.wait(guard, streams, "stream_synchronize");
    if (result == 0) result = stream.context->device->sticky_error;
  }
  tell(record, result);
  return result;
}

int synchronize_device(Device& device) {
  if (const int error = check_unsafe_call()) return error;
  Context* context = primary_context(device);
  SyncRecord record = sync_record(SyncKind::context_synchronize, *context);
  int result = 0;
  {
    Lock guard = Engine::get().lock();
    result = Engine::get().wait_device(guard, device, "device_synchronize");
  }
  tell(record, result);
  return result;
}

}  // namespace simgpu
