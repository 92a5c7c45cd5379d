// SPDX-License-Identifier: Apache-2.0
//
// How the host waits for the device: for one operation, for streams, for room in a queue.
#include <algorithm>

#include "clock.hpp"
#include "engine.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "truth.hpp"

namespace simgpu {
namespace {

// Opens the lock for the time of a sleep.
void sleep_unlocked(Lock& lock, std::int64_t deadline_ns) {
  lock.unlock();
  sleep_until_ns(deadline_ns);
  lock.lock();
}

}  // namespace

std::int64_t Engine::wait_until_resolved(Lock& lock, Operation* operation) {
  while (!operation->resolved) wait_for_resolution(lock);
  return operation->end_ns;
}

int Engine::wait(Lock& lock, Operation* operation, const char* reason) {
  if (operation == nullptr) return 0;
  Device& device = *operation->stream->context->device;
  const std::int64_t begin_ns = now_ns();
  if (!done(operation, begin_ns)) {
    reference(operation);
    const std::uint64_t id = operation->record.id;
    const std::int64_t end_ns = wait_until_resolved(lock, operation);
    if (end_ns > now_ns()) sleep_unlocked(lock, end_ns);
    if (truth_enabled()) truth_wait(reason, begin_ns, now_ns(), id);
    release(operation);
  } else if (truth_enabled()) {
    truth_pass(reason, begin_ns, operation->record.id);
  }
  retire(now_ns());
  return device.sticky_error;
}

int Engine::wait(Lock& lock, std::span<Stream* const> streams, const char* reason) {
  // What is queued while we wait is not waited for, so take hold of the ends first.
  std::vector<Operation*> ends;
  for (Stream* stream : streams) {
    if (stream->last == nullptr) continue;
    reference(stream->last);
    ends.push_back(stream->last);
  }
  int error = 0;
  for (Operation* end : ends) {
    const int result = wait(lock, end, reason);
    if (error == 0) error = result;
    release(end);
  }
  return error;
}

int Engine::wait_device(Lock& lock, Device& device, const char* reason) {
  std::vector<Stream*> streams;
  for (Stream* stream : working_) {
    if (stream->context->device == &device) streams.push_back(stream);
  }
  const int error = wait(lock, streams, reason);
  return error != 0 ? error : device.sticky_error;
}

void Engine::wait_for_room(Lock& lock, Stream& stream) {
  if (stream.depth < options().queue_depth) return;
  retire(now_ns());
  if (stream.depth < options().queue_depth) return;
  const std::int64_t begin_ns = now_ns();
  const std::uint64_t id = stream.head->record.id;
  while (stream.depth >= options().queue_depth) {
    if (stream.head->resolved) {
      sleep_unlocked(lock, stream.head->end_ns);
    } else {
      wait_for_resolution(lock);
    }
    retire(now_ns());
  }
  if (truth_enabled()) truth_wait("launch_queue_full", begin_ns, now_ns(), id);
}

void Engine::shut_down() {
  {
    // A signal handler may end the process while its thread holds the lock: never wait for ever.
    Lock guard(mutex_, std::try_to_lock);
    for (int tries = 0; !guard.owns_lock() && tries < 100; ++tries) {
      sleep_until_ns(now_ns() + 1'000'000);
      guard.try_lock();
    }
    if (!guard.owns_lock()) return;
    retire(now_ns());
    if (truth_enabled()) {
      for (const Stream* stream : working_) {
        for (const Operation* o = stream->head; o != nullptr; o = o->next) truth_unfinished(*o);
      }
    }
  }
  deliver(false);
}

void Engine::reset_after_fork() {
  working_.clear();
  finished_ = finished_tail_ = nullptr;
  finished_count_.store(0, std::memory_order_relaxed);
  next_end_ns_ = INT64_MAX;
}

}  // namespace simgpu
