// SPDX-License-Identifier: Apache-2.0
//
// Where records go: a buffer of the client's for each thread that makes records, as CUPTI 13 does
// by default, or one for all.
//
//   listener → ActivityStore::append*() → ActivityBuffer → collect() → worker → client
//
// The request callback runs on the thread that needs room, with no lock of ours held; the
// completed callback runs on the worker's thread only.
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "activity_buffer.hpp"
#include "record_faults.hpp"

namespace simgpu::cupti {

/// One per process, never destroyed. [any thread] unless said otherwise.
class ActivityStore {
 public:
  explicit ActivityStore(RecordFaults& faults) : faults_(faults) {}

  /// The client's callbacks; whoever sets them last gets all records, those in buffers that an
  /// earlier client gave included.
  void set_client(CUpti_BuffersCallbackRequestFunc requested,
                  CUpti_BuffersCallbackCompleteFunc completed);
  /// Forgets the client and what its buffers hold.
  void abandon();
  bool has_client() const { return request_.load(std::memory_order_acquire) != nullptr; }

  /// [hot] Keeps a finished record. `label` names what is recorded, for fault rules.
  template <class Record>
  void append(const Record& record, const char* label) {
    write(&record, sizeof(Record), record.kind, label, false);
  }

  /// [hot] Keeps a record whose times come later, by complete().
  template <class Record>
  PendingRecord append_pending(const Record& record, const char* label) {
    return write(&record, sizeof(Record), record.kind, label, true);
  }

  /// Fills in an unfinished record by `fill(uint8_t*)`, unless a forced flush took it away.
  template <class Fill>
  void complete(PendingRecord record, Fill&& fill) {
    switch (record.buffer->complete(record.slot, fill)) {
      case ActivityBuffer::Completion::kMorePending:
        break;
      case ActivityBuffer::Completion::kRetiredBufferDone:
        wake_worker();
        break;
      case ActivityBuffer::Completion::kLastOfSurrendered:
        delete record.buffer;
        break;
    }
  }

  /// Records lost for want of a buffer since the last call.
  std::size_t take_dropped() { return dropped_.exchange(0, std::memory_order_relaxed); }

  /// One buffer for each thread, or one for all. Affects buffers requested from now on.
  void set_per_thread(bool on) { per_thread_.store(on, std::memory_order_relaxed); }
  bool per_thread() const { return per_thread_.load(std::memory_order_relaxed); }
  /// Whether the client promises buffers of zeros; else they are cleared here.
  void set_zeroed_by_client(bool on) { zeroed_by_client_.store(on, std::memory_order_relaxed); }
  bool zeroed_by_client() const { return zeroed_by_client_.load(std::memory_order_relaxed); }

  /// What a flush takes: kFull, full buffers without unfinished records; kComplete, any without;
  /// kForced, all.
  enum class Collect : std::uint8_t { kFull, kComplete, kForced };
  /// Takes buffers out, full ones first, in the order they filled. [worker]
  std::vector<ActivityBuffer*> collect(Collect what);
  /// Hands a collected buffer to the client. [worker]
  void give_back(ActivityBuffer* buffer);
  /// Whether full buffers wait for their last operations. [worker]
  bool has_full_buffers() const;
  /// Throws a collected buffer away: the client never sees it again. [worker]
  static void discard(ActivityBuffer* buffer);

  /// Called when a full buffer has become deliverable.
  void set_wake(void (*wake)()) { wake_.store(wake, std::memory_order_release); }

  /// True while this thread runs the client's request callback.
  static bool in_request() noexcept;

 private:
  struct ThreadWriter {
    SpinLock lock;
    ActivityBuffer* current = nullptr;  // guarded by lock
  };

  PendingRecord write(const void* record, std::size_t bytes, int kind, const char* label,
                      bool pending);
  PendingRecord try_append(ThreadWriter& writer, const void* record, std::size_t bytes,
                           bool pending, ActivityBuffer*& full);
  PendingRecord write_to_new(ThreadWriter& writer, const void* record, std::size_t bytes,
                             bool pending);
  ActivityBuffer* request();
  void retire(ActivityBuffer* buffer);
  void wake_worker();
  ThreadWriter& writer();
  ThreadWriter& register_thread();
  static void thread_exits(void* writer);

  RecordFaults& faults_;
  std::atomic<CUpti_BuffersCallbackRequestFunc> request_{nullptr};
  std::atomic<CUpti_BuffersCallbackCompleteFunc> completed_{nullptr};
  std::atomic<std::size_t> dropped_{0};
  std::atomic<bool> per_thread_{true};
  std::atomic<bool> zeroed_by_client_{false};
  std::atomic<void (*)()> wake_{nullptr};

  ThreadWriter shared_writer_;       // used while per_thread_ is off, and for exiting threads
  std::mutex shared_request_mutex_;  // one request at a time for shared_writer_
  std::mutex writers_mutex_;
  std::vector<std::unique_ptr<ThreadWriter>> writers_;  // guarded by writers_mutex_
  mutable std::mutex retired_mutex_;
  std::deque<ActivityBuffer*> retired_;  // guarded by retired_mutex_
};

}  // namespace simgpu::cupti
