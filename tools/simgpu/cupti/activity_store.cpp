// SPDX-License-Identifier: Apache-2.0
#include "activity_store.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "library.hpp"

namespace simgpu::cupti {
namespace {

// Plain pointers, so that a thread's first record needs no constructor guard.
thread_local void* t_writer = nullptr;
thread_local bool t_in_request = false;

}  // namespace

bool ActivityStore::in_request() noexcept { return t_in_request; }

void ActivityStore::set_client(CUpti_BuffersCallbackRequestFunc requested,
                               CUpti_BuffersCallbackCompleteFunc completed) {
  completed_.store(completed, std::memory_order_release);
  request_.store(requested, std::memory_order_release);
}

void ActivityStore::abandon() {
  set_client(nullptr, nullptr);
  for (ActivityBuffer* buffer : collect(Collect::kForced)) {
    discard(buffer);
  }
}

PendingRecord ActivityStore::write(const void* record, std::size_t bytes, int kind,
                                   const char* label, bool pending) {
  const RecordFaults::Drop drop = faults_.drops(kind, label);
  if (drop != RecordFaults::Drop::kKeep || !has_client()) {
    if (drop == RecordFaults::Drop::kCounted) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
    }
    return {};
  }
  ThreadWriter& target = writer();
  ActivityBuffer* full = nullptr;
  if (const PendingRecord kept = try_append(target, record, bytes, pending, full)) {
    return kept;
  }
  if (full != nullptr) {
    retire(full);
  }
  return write_to_new(target, record, bytes, pending);
}

// Appends to the writer's buffer. A buffer without room for the record, or that this record
// fills, comes back in `full`, taken from the writer.
PendingRecord ActivityStore::try_append(ThreadWriter& writer, const void* record,
                                        std::size_t bytes, bool pending, ActivityBuffer*& full) {
  const std::lock_guard lock(writer.lock);
  ActivityBuffer* buffer = writer.current;
  if (buffer == nullptr) {
    return {};
  }
  if (!buffer->has_room(bytes)) {
    full = std::exchange(writer.current, nullptr);
    return {};
  }
  const PendingRecord kept{buffer, buffer->append(record, bytes)};
  if (pending) {
    buffer->expect_completion();
  }
  return kept;
}

// Asks the client for a buffer and puts the record there, or counts it as dropped.
PendingRecord ActivityStore::write_to_new(ThreadWriter& writer, const void* record,
                                          std::size_t bytes, bool pending) {
  std::unique_lock<std::mutex> one_request;
  if (&writer == &shared_writer_ && !t_in_request) {
    one_request = std::unique_lock(shared_request_mutex_);
    ActivityBuffer* full = nullptr;
    if (const PendingRecord kept = try_append(writer, record, bytes, pending, full)) {
      return kept;  // another thread's request was faster
    }
    if (full != nullptr) {
      retire(full);
    }
  }
  ActivityBuffer* fresh = request();
  if (fresh != nullptr && !fresh->has_room(bytes)) {
    retire(fresh);  // goes back empty
    fresh = nullptr;
  }
  if (fresh == nullptr) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  const PendingRecord kept{fresh, fresh->append(record, bytes)};
  if (pending) {
    fresh->expect_completion();
  }
  const std::lock_guard lock(writer.lock);
  writer.current = fresh;
  return kept;
}

ActivityBuffer* ActivityStore::request() {
  if (t_in_request) {
    return nullptr;  // the request callback itself made a record
  }
  std::uint8_t* memory = nullptr;
  std::size_t capacity = 0;
  std::size_t max_records = 0;
  t_in_request = true;
  if (const auto requested = request_.load(std::memory_order_acquire)) {
    requested(&memory, &capacity, &max_records);
  }
  t_in_request = false;
  if (memory == nullptr) {
    return nullptr;
  }
  if (!zeroed_by_client()) {
    std::memset(memory, 0, capacity);
  }
  return new ActivityBuffer(memory, capacity, max_records);
}

void ActivityStore::retire(ActivityBuffer* buffer) {
  buffer->retire();
  const bool deliverable = !buffer->incomplete();
  {
    const std::lock_guard lock(retired_mutex_);
    retired_.push_back(buffer);
  }
  if (deliverable) {
    wake_worker();
  }
}

void ActivityStore::wake_worker() {
  if (const auto wake = wake_.load(std::memory_order_acquire)) {
    wake();
  }
}

ActivityStore::ThreadWriter& ActivityStore::writer() {
  if (!per_thread()) {
    return shared_writer_;
  }
  if (t_writer == nullptr) {
    return register_thread();
  }
  return *static_cast<ThreadWriter*>(t_writer);
}

ActivityStore::ThreadWriter& ActivityStore::register_thread() {
  static pthread_key_t key;
  static const bool have_key = pthread_key_create(&key, &ActivityStore::thread_exits) == 0;
  if (!have_key) {
    return shared_writer_;
  }
  auto fresh = std::make_unique<ThreadWriter>();
  ThreadWriter& registered = *fresh;
  {
    const std::lock_guard lock(writers_mutex_);
    writers_.push_back(std::move(fresh));
  }
  t_writer = &registered;
  pthread_setspecific(key, &registered);
  return registered;
}

// Not called for the main thread when the process exits.
void ActivityStore::thread_exits(void* writer) {
  if (is_inert()) {
    return;
  }
  ActivityStore& store = library().store;
  t_writer = &store.shared_writer_;  // for records of later thread-exit handlers
  std::unique_ptr<ThreadWriter> own;
  {
    const std::lock_guard lock(store.writers_mutex_);
    const auto found =
        std::find_if(store.writers_.begin(), store.writers_.end(),
                     [&](const auto& candidate) { return candidate.get() == writer; });
    own = std::move(*found);
    store.writers_.erase(found);
  }
  if (own->current != nullptr) {
    store.retire(own->current);
  }
}

std::vector<ActivityBuffer*> ActivityStore::collect(Collect what) {
  const auto takes = [what](const ActivityBuffer& buffer) {
    return what == Collect::kForced || !buffer.incomplete();
  };
  std::vector<ActivityBuffer*> taken;
  {
    const std::lock_guard lock(retired_mutex_);
    std::deque<ActivityBuffer*> kept;
    for (ActivityBuffer* buffer : retired_) {
      if (takes(*buffer)) {
        taken.push_back(buffer);
      } else {
        kept.push_back(buffer);
      }
    }
    retired_.swap(kept);
  }
  if (what == Collect::kFull) {
    return taken;
  }
  const auto take_current = [&](ThreadWriter& writer) {
    const std::lock_guard lock(writer.lock);
    if (writer.current != nullptr && !writer.current->empty() && takes(*writer.current)) {
      taken.push_back(std::exchange(writer.current, nullptr));
    }
  };
  const std::lock_guard lock(writers_mutex_);
  take_current(shared_writer_);
  for (const auto& writer : writers_) {
    take_current(*writer);
  }
  return taken;
}

bool ActivityStore::has_full_buffers() const {
  const std::lock_guard lock(retired_mutex_);
  return !retired_.empty();
}

void ActivityStore::give_back(ActivityBuffer* buffer) {
  std::uint8_t* const memory = buffer->memory();
  const std::size_t capacity = buffer->capacity();
  const std::size_t used = buffer->used();
  const bool still_referred = buffer->surrender();  // if true, it may be gone from here on
  if (const auto completed = completed_.load(std::memory_order_acquire)) {
    completed(nullptr, 0, memory, capacity, used);
  }
  if (!still_referred) {
    delete buffer;
  }
}

void ActivityStore::discard(ActivityBuffer* buffer) {
  if (!buffer->surrender()) {
    delete buffer;
  }
}

}  // namespace simgpu::cupti
