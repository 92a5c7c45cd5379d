// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's time: what stands in every record. By default CLOCK_REALTIME in ns; CLOCK_MONOTONIC_RAW
// under the fault "wsl"; or whatever a client's timestamp callback returns.
//
//   core (CLOCK_MONOTONIC, device clock) → Clock → start, end, timestamp of records
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>

#include "spin_lock.hpp"

namespace simgpu::cupti {

/// Converts the core's clock into CUPTI's. [any thread]
class Clock {
 public:
  Clock();

  /// Now, in CUPTI's clock.
  std::uint64_t now();

  /// [hot] Time of something that happens on the host at `host_ns`, which is about now: asks the
  /// client's callback where there is one, as CUPTI documents it.
  std::uint64_t host_timestamp(std::int64_t host_ns) {
    const auto callback = callback_.load(std::memory_order_acquire);
    return callback != nullptr && !still_previous_clock() ? callback() : default_time(host_ns);
  }

  /// Time of something that happened on a device. With a client's callback the line through
  /// samples of both clocks is used, so that callback's unit need not be ns.
  std::uint64_t device_timestamp(std::int64_t device_ns);

  /// Precondition: `callback` is not null. It cannot be unset. Under the fault "clock.head" the
  /// next times are still those of the default clock.
  void set_callback(CUpti_TimestampCallbackFunc callback);

  /// The default clock again, as in a process that CUPTI has just been attached to.
  void forget_callback();

  /// Follows steps and slewing of the base clock. Steps below 1 µs are not followed, so that
  /// differences of records of a quiet run are exact.
  void resync();

 private:
  struct Sample {
    std::int64_t host_ns = 0;
    std::uint64_t cupti = 0;
  };
  std::uint64_t default_time(std::int64_t core_ns) const {
    return static_cast<std::uint64_t>(core_ns + offset_.load(std::memory_order_relaxed));
  }
  bool still_previous_clock() {
    return head_left_.load(std::memory_order_relaxed) > 0 &&
           head_left_.fetch_sub(1, std::memory_order_relaxed) > 0;
  }
  Sample sample() const;
  std::uint64_t read() const;
  void sample_line();

  clockid_t base_clock_;
  std::atomic<std::int64_t> offset_{0};  // relaxed: one word, orders nothing
  std::atomic<std::int64_t> head_left_{0};  // relaxed: a counter
  std::atomic<CUpti_TimestampCallbackFunc> callback_{nullptr};
  // The line of a client's clock, from when it was registered to the latest sample.
  SpinLock line_lock_;
  Sample first_;
  Sample last_;
  double slope_ = 1.0;
};

}  // namespace simgpu::cupti
