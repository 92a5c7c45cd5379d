// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's own thread: hands buffers to the client, follows the clock, samples the environment.
//
//   cuptiActivityFlushAll, full buffers, the flush period → worker → completed callback
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "activity_store.hpp"
#include "clock.hpp"
#include "kind_table.hpp"
#include "record_faults.hpp"

namespace simgpu::cupti {

/// [any thread] Never destroyed; its thread is detached.
class Worker {
 public:
  Worker(ActivityStore& store, Clock& clock, KindTable& kinds, RecordFaults& faults)
      : store_(store), clock_(clock), kinds_(kinds), faults_(faults) {}

  /// Starts the thread unless it runs.
  void start();

  /// Delivers what is deliverable and returns when the client has it. From the worker's own
  /// thread (a completed callback) it returns at once: the delivery is already under way.
  void flush(bool forced);

  /// Full buffers wait for the next period of `period_ms`; 0: they are delivered when complete.
  void set_period(std::uint32_t period_ms);

  /// A full buffer has become complete.
  void wake();

  /// Something the worker looks at by time has been switched.
  void reconsider();

 private:
  struct Held {
    std::int64_t due_ns;
    ActivityBuffer* buffer;
  };
  struct Round {
    bool flush = false;
    bool forced = false;
    bool full = false;
  };

  void run();
  void work(Round round);
  void deliver(const std::vector<ActivityBuffer*>& buffers);
  void deliver_held();
  void record_overhead(std::int64_t start_ns, std::int64_t end_ns);
  std::int64_t next_due_ns() const;

  ActivityStore& store_;
  Clock& clock_;
  KindTable& kinds_;
  RecordFaults& faults_;

  std::mutex mutex_;
  std::condition_variable wanted_;
  std::condition_variable done_;
  bool running_ = false;             // these are guarded by mutex_
  bool full_ready_ = false;
  bool forced_ = false;
  bool reconsider_ = false;
  std::uint64_t flushes_wanted_ = 0;
  std::uint64_t flushes_done_ = 0;
  std::uint32_t period_ms_ = 0;
  std::int64_t period_due_ns_ = 0;

  std::vector<Held> held_;  // the worker's own
  std::int64_t environment_due_ns_ = 0;
  std::int64_t retry_due_ns_ = 0;
};

/// Appends the ENVIRONMENT records of every device. [worker]
void record_environment();

}  // namespace simgpu::cupti
