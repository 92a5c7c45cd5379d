// SPDX-License-Identifier: Apache-2.0
//
// The lock of the record path. A record is written by the thread that makes it, into a buffer of
// its own; the only other visitor is a flush. So the lock is all but never contended and must cost
// no more than the atomic exchange it is.
#pragma once

#include <sched.h>

#include <atomic>

namespace simgpu::cupti {

/// A lock for sections of a few dozen nanoseconds. Meets the standard's BasicLockable.
class SpinLock {
 public:
  void lock() noexcept {
    int turns = 0;
    // acquire: what the previous holder wrote is seen by the new one.
    while (locked_.exchange(true, std::memory_order_acquire)) {
      // The holder may have been preempted: spinning on would keep it from running.
      if (++turns > kTurnsBeforeYield) {
        sched_yield();
      }
    }
  }

  // release: publishes what was written under the lock.
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kTurnsBeforeYield = 64;
  std::atomic<bool> locked_{false};
};

}  // namespace simgpu::cupti
