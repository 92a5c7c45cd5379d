// SPDX-License-Identifier: Apache-2.0
#include "clock.hpp"

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include "../core/faults.hpp"
#include "../core/listener.hpp"

namespace simgpu::cupti {
namespace {

constexpr std::int64_t kFollowedStepNs = 1'000;
// Two samples closer than this give a slope no better than their reading noise (about 50 ns).
constexpr std::int64_t kShortestBaseNs = 2'000'000;
constexpr std::int64_t kSampleEveryNs = 50'000'000;

std::uint64_t read_clock(clockid_t id) {
  timespec time{};
  clock_gettime(id, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

Clock::Clock() : base_clock_(find_fault("wsl") != nullptr ? CLOCK_MONOTONIC_RAW : CLOCK_REALTIME) {
  const Sample first = sample();
  offset_.store(static_cast<std::int64_t>(first.cupti) - first.host_ns);
}

std::uint64_t Clock::read() const {
  const auto callback = callback_.load(std::memory_order_acquire);
  return callback != nullptr ? callback() : read_clock(base_clock_);
}

// Brackets a reading between two of the host clock and keeps the tightest of a few.
Clock::Sample Clock::sample() const {
  Sample best;
  std::int64_t best_gap = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t before = now_ns();
    const std::uint64_t value = read();
    const std::int64_t after = now_ns();
    if (after - before < best_gap) {
      best_gap = after - before;
      best = {before + (after - before) / 2, value};
    }
  }
  return best;
}

std::uint64_t Clock::now() { return read(); }

void Clock::set_callback(CUpti_TimestampCallbackFunc callback) {
  const std::lock_guard lock(line_lock_);
  callback_.store(callback, std::memory_order_release);
  first_ = sample();
  last_ = first_;
  slope_ = 1.0;
  if (Fault* head = find_fault("clock.head"); head != nullptr && head->fires()) {
    head_left_.store(head->number("times", 64), std::memory_order_relaxed);
  }
}

void Clock::forget_callback() {
  const std::lock_guard lock(line_lock_);
  callback_.store(nullptr, std::memory_order_release);
  head_left_.store(0, std::memory_order_relaxed);
  const Sample fresh = sample();
  offset_.store(static_cast<std::int64_t>(fresh.cupti) - fresh.host_ns, std::memory_order_relaxed);
}

// Precondition: line_lock_ is held.
void Clock::sample_line() {
  while (now_ns() - first_.host_ns < kShortestBaseNs) {
    // Only within 2 ms of the registration, and never on a thread of the job.
  }
  last_ = sample();
  slope_ = static_cast<double>(static_cast<std::int64_t>(last_.cupti - first_.cupti)) /
           static_cast<double>(last_.host_ns - first_.host_ns);
}

std::uint64_t Clock::device_timestamp(std::int64_t device_ns) {
  if (callback_.load(std::memory_order_acquire) == nullptr || still_previous_clock()) {
    return default_time(device_ns);
  }
  const std::lock_guard lock(line_lock_);
  if (last_.host_ns == first_.host_ns || now_ns() - last_.host_ns > kSampleEveryNs) {
    sample_line();
  }
  const double distance = static_cast<double>(device_ns - last_.host_ns) * slope_;
  return last_.cupti + static_cast<std::uint64_t>(std::llround(distance));
}

void Clock::resync() {
  if (callback_.load(std::memory_order_acquire) != nullptr) {
    return;
  }
  const Sample fresh = sample();
  const std::int64_t offset = static_cast<std::int64_t>(fresh.cupti) - fresh.host_ns;
  if (std::abs(offset - offset_.load(std::memory_order_relaxed)) > kFollowedStepNs) {
    offset_.store(offset, std::memory_order_relaxed);
  }
}

}  // namespace simgpu::cupti
