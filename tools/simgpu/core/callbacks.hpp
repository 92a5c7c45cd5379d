// SPDX-License-Identifier: Apache-2.0
//
// The one thread of the simulation: runs host functions when their turn has come in simulated
// time, moves the data of copies somebody may poll for, and writes out the truth now and then.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <queue>
#include <vector>

namespace simgpu {

struct Operation;

class CallbackThread {
 public:
  // Leaked on purpose; the thread is detached and starts with the first request.
  static CallbackThread& get();

  // Runs the host function of `operation` at `when_ns`; a null operation only retires what has
  // ended by then. May be called with the engine's lock held.
  void run_at(std::int64_t when_ns, Operation* operation);

  // Wakes every 100 ms from now on to write out the truth.
  void keep_truth();

  void reset_after_fork();

 private:
  struct Due {
    std::int64_t when_ns;
    std::uint64_t order;
    Operation* operation;
    bool operator<(const Due& other) const {  // the queue's top is the earliest
      return when_ns != other.when_ns ? when_ns > other.when_ns : order > other.order;
    }
  };

  void start();  // mutex_ held
  void run();
  static void serve(const Due& due);

  std::mutex mutex_;  // taken under the engine's lock, never the other way round
  std::condition_variable changed_;
  std::priority_queue<Due> due_;
  std::uint64_t order_ = 0;
  bool running_ = false;
  bool keeps_truth_ = false;
};

}  // namespace simgpu
