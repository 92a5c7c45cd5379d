// SPDX-License-Identifier: Apache-2.0
//
// The rules of time: when an operation starts, when a waiter wakes, when a result is delivered.
//
// API handlers → **engine** → retire (memory effects) → listener, truth
//
// An operation starts at the latest of: the launch plus its latency, its predecessor in the
// stream, the events and streams it waits for, its copy engine. Where all of these are known the
// start and the end are computed when it is queued; no thread is needed to run a stream. Only what
// follows a host function (whose length nobody knows) stays unresolved until that has returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "model.hpp"

namespace simgpu {

using Lock = std::unique_lock<std::mutex>;

class Engine {
 public:
  // The one engine of the process, leaked on purpose.
  static Engine& get();

  // Everything below with a Lock or marked [locked] needs this lock.
  Lock lock() { return Lock(mutex_); }

  // [locked] A new operation of `stream` with record, ids and the queueing time filled in.
  Operation* create(OperationKind kind, Stream& stream, std::uint32_t correlation_id);
  // [locked] Puts it at the end of its stream, behind everything that CUDA's rules and `after`
  // put before it. Takes over the operation.
  void enqueue(Operation* operation, std::span<Operation* const> after = {});
  // Blocks while the stream's queue is full. Call before create().
  void wait_for_room(Lock& lock, Stream& stream);

  // Waits until the operation has ended. The lock is open while it waits and closed at return.
  // Writes the wait into the truth if it did block. Returns the device's sticky error, or 0.
  int wait(Lock& lock, Operation* operation, const char* reason);
  // The same for all work queued to these streams so far.
  int wait(Lock& lock, std::span<Stream* const> streams, const char* reason);
  // Waits for everything of the device.
  int wait_device(Lock& lock, Device& device, const char* reason);

  // [locked] Takes what has ended by `now_ns` out of the queues, moves its data.
  void retire(std::int64_t now_ns);
  // [locked] The same if anything can have ended; the cheap form for launches.
  void retire_due(std::int64_t now_ns) {
    if (now_ns >= next_end_ns_) retire(now_ns);
  }
  // Hands retired operations to the listener and the truth. Call without the lock.
  void deliver(bool wait_for_others);
  // Whether so many retired operations wait for deliver() that a call should see to it, which takes
  // three locks. A listener that cannot wait asks by deliver_finished(). Relaxed: a hint.
  bool should_deliver() const {
    return finished_count_.load(std::memory_order_relaxed) >= kDeliveredAtOnce;
  }

  // [locked] Whether it has ended by now.
  static bool done(const Operation* operation, std::int64_t now_ns) {
    return operation == nullptr || (operation->resolved && operation->end_ns <= now_ns);
  }
  // [locked] Whether all work of the stream has ended by now.
  static bool idle(const Stream& stream, std::int64_t now_ns) {
    return stream.unresolved == 0 && stream.tail_end_ns <= now_ns;
  }
  // [locked] The streams an action in `stream` must wait for besides its own: CUDA's legacy rule.
  void implicit_streams(const Stream& stream, std::vector<Stream*>& out) const;

  static void reference(Operation* operation) {
    if (operation != nullptr) ++operation->references;
  }
  void release(Operation* operation);

  // Called by the callback thread: a host function has returned.
  void host_function_ended(Operation* operation);
  // What a host function or another process was waited for has ended, or will at `end_ns`.
  void ended_elsewhere(Operation* operation, std::int64_t end_ns);

  // Last things at exit: what has ended is delivered, the rest is reported as unfinished.
  void shut_down();
  // In a forked child: nothing of the parent's GPU is there any more.
  void reset_after_fork();
  std::mutex& mutex() { return mutex_; }

 private:
  Engine() = default;
  void gather_gates(Operation& operation, std::span<Operation* const> after);
  void add_gate(Operation& operation, Operation* before);
  void add_gate(Operation& operation, const Stream& stream);
  bool try_resolve(Operation& operation);
  void resolve_pending();
  void set_times(Operation& operation, std::int64_t start_ns);
  void list(Stream& stream);
  void apply(Operation& operation);
  void finish(Operation* operation);
  void deliver_one(Operation& operation);
  std::int64_t wait_until_resolved(Lock& lock, Operation* operation);

  static constexpr std::uint32_t kDeliveredAtOnce = 32;

  std::mutex mutex_;
  std::mutex delivery_mutex_;       // one deliverer at a time; never taken under mutex_
  std::vector<Stream*> working_;    // streams with a queue
  std::int64_t next_end_ns_ = INT64_MAX;  // no head of a queue ends before
  std::uint64_t next_id_ = 1;
  Operation* free_ = nullptr;       // recycled operations
  Operation* finished_ = nullptr;   // retired, to be delivered; oldest first
  Operation* finished_tail_ = nullptr;
  std::atomic<std::uint32_t> finished_count_{0};
};

// CUDA's spelling of the mutex' condition: notified when something unresolved got resolved.
void wait_for_resolution(Lock& lock);
void notify_resolution();

}  // namespace simgpu
