// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "../core/listener.hpp"
#include "library.hpp"
#include "record_order.hpp"

namespace simgpu::cupti {
namespace {

constexpr std::int64_t kNever = INT64_MAX;
// CUPTI documents "various rates"; its ENVIRONMENT records in traces lie about 100 ms apart.
constexpr std::int64_t kEnvironmentPeriodNs = 100'000'000;

// A full buffer whose last operation has ended is looked for this often when nobody calls CUDA
// any more; calls of CUDA themselves bring completions in.
constexpr std::int64_t kRetryNs = 100'000'000;

thread_local bool t_is_worker = false;

}  // namespace

void Worker::start() {
  const std::lock_guard lock(mutex_);
  if (running_) {
    return;
  }
  running_ = true;
  // The job's signals are for the job's threads: the new thread inherits a full mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Worker::flush(bool forced) {
  if (t_is_worker) {
    return;
  }
  start();
  std::unique_lock lock(mutex_);
  forced_ = forced_ || forced;
  const std::uint64_t ticket = ++flushes_wanted_;
  wanted_.notify_one();
  done_.wait(lock, [&] { return flushes_done_ >= ticket; });
}

void Worker::set_period(std::uint32_t period_ms) {
  const std::lock_guard lock(mutex_);
  period_ms_ = period_ms;
  period_due_ns_ = now_ns() + std::int64_t{period_ms} * 1'000'000;
  reconsider_ = true;
  wanted_.notify_one();
}

void Worker::wake() {
  const std::lock_guard lock(mutex_);
  full_ready_ = true;
  if (period_ms_ == 0) {
    wanted_.notify_one();
  }
}

void Worker::reconsider() {
  const std::lock_guard lock(mutex_);
  reconsider_ = true;
  wanted_.notify_one();
}

// Precondition: mutex_ is held. The earliest time something is to be done unasked.
std::int64_t Worker::next_due_ns() const {
  std::int64_t due = kNever;
  for (const Held& held : held_) {
    due = std::min(due, held.due_ns);
  }
  if (period_ms_ != 0) {
    due = std::min(due, period_due_ns_);
  }
  if (period_ms_ == 0 && store_.has_full_buffers()) {
    due = std::min(due, retry_due_ns_);
  }
  if (kinds_.enabled_anywhere(CUPTI_ACTIVITY_KIND_ENVIRONMENT)) {
    due = std::min(due, environment_due_ns_);
  }
  return due;
}

void Worker::run() {
  t_is_worker = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto asked = [this] {
      return flushes_wanted_ != flushes_done_ || (full_ready_ && period_ms_ == 0) || reconsider_;
    };
    const std::int64_t due = next_due_ns();
    if (due == kNever) {
      wanted_.wait(lock, asked);
    } else if (due > now_ns()) {
      wanted_.wait_for(lock, std::chrono::nanoseconds(due - now_ns()), asked);
    }
    const bool period_over = period_ms_ != 0 && now_ns() >= period_due_ns_;
    if (period_over) {
      period_due_ns_ = now_ns() + std::int64_t{period_ms_} * 1'000'000;
    }
    const std::uint64_t ticket = flushes_wanted_;
    const bool retry = period_ms_ == 0 && due != kNever && now_ns() >= retry_due_ns_;
    Round round;
    round.flush = ticket != flushes_done_;
    round.forced = std::exchange(forced_, false);
    round.full = period_ms_ != 0 ? period_over : (std::exchange(full_ready_, false) || retry);
    reconsider_ = false;
    lock.unlock();
    work(round);
    lock.lock();
    flushes_done_ = ticket;
    done_.notify_all();
  }
}

void Worker::work(Round round) {
  if (round.flush || round.full) {
    retry_due_ns_ = now_ns() + kRetryNs;
    const std::int64_t start_ns = now_ns();
    clock_.resync();
    deliver_finished();
    deliver(store_.collect(!round.flush   ? ActivityStore::Collect::kFull
                           : round.forced ? ActivityStore::Collect::kForced
                                          : ActivityStore::Collect::kComplete));
    record_overhead(start_ns, now_ns());
  }
  deliver_held();
  if (kinds_.enabled_anywhere(CUPTI_ACTIVITY_KIND_ENVIRONMENT) &&
      now_ns() >= environment_due_ns_) {
    environment_due_ns_ = now_ns() + kEnvironmentPeriodNs;
    record_environment();
  }
}

void Worker::deliver(const std::vector<ActivityBuffer*>& buffers) {
  if (buffers.empty()) {
    return;
  }
  const bool after_stop = kinds_.nothing_enabled();
  for (ActivityBuffer* buffer : buffers) {
    switch (faults_.on_delivery(after_stop)) {
      case RecordFaults::Delivery::kNow:
        store_.give_back(buffer);
        break;
      case RecordFaults::Delivery::kStolen:
        ActivityStore::discard(buffer);
        break;
      case RecordFaults::Delivery::kReversed:
        reverse_records(buffer->memory(), buffer->used());
        store_.give_back(buffer);
        break;
      case RecordFaults::Delivery::kHeld:
        held_.push_back({now_ns() + faults_.hold_ns(after_stop), buffer});
        break;
    }
  }
}

// Late buffers are written to once more just before they are returned: a client that has freed
// them by then corrupts its heap, as it would on hardware.
void Worker::deliver_held() {
  const std::int64_t now = now_ns();
  std::vector<Held> waiting;
  for (const Held& held : held_) {
    if (held.due_ns > now) {
      waiting.push_back(held);
      continue;
    }
    std::memset(held.buffer->memory() + held.buffer->used(), 0,
                held.buffer->capacity() - held.buffer->used());
    store_.give_back(held.buffer);
  }
  held_.swap(waiting);
}

void Worker::record_overhead(std::int64_t start_ns, std::int64_t end_ns) {
  if (!kinds_.enabled_anywhere(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
    return;
  }
  CUpti_ActivityOverhead3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  record.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  record.objectId.pt.processId = library().process_id;
  record.objectId.pt.threadId = thread_id_for_records();
  record.start = clock_.host_timestamp(start_ns);
  record.end = clock_.host_timestamp(end_ns);
  store_.append(record, "CUPTI_BUFFER_FLUSH");
}

}  // namespace simgpu::cupti
