// SPDX-License-Identifier: Apache-2.0
#include "callbacks.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <new>
#include <thread>

#include "clock.hpp"
#include "engine.hpp"
#include "truth.hpp"

namespace simgpu {
namespace {

constexpr std::int64_t kTruthPeriodNs = 100'000'000;

}  // namespace

CallbackThread& CallbackThread::get() {
  static CallbackThread* const kThread = new CallbackThread;
  return *kThread;
}

void CallbackThread::start() {
  if (running_) return;
  running_ = true;
  // The job's signals are the job's: this thread takes none of them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CallbackThread::run_at(std::int64_t when_ns, Operation* operation) {
  const std::lock_guard guard(mutex_);
  start();
  due_.push(Due{when_ns, ++order_, operation});
  if (due_.top().order == order_) changed_.notify_one();
}

void CallbackThread::keep_truth() {
  const std::lock_guard guard(mutex_);
  keeps_truth_ = true;
  start();
}

void CallbackThread::reset_after_fork() {
  new (this) CallbackThread;  // the parent's thread is not in this process
}

void CallbackThread::run() {
  pthread_setname_np(pthread_self(), "simgpu");
  std::unique_lock lock(mutex_);
  std::int64_t next_truth_ns = now_ns() + kTruthPeriodNs;
  for (;;) {
    const std::int64_t now = now_ns();
    if (keeps_truth_ && now >= next_truth_ns) {
      next_truth_ns = now + kTruthPeriodNs;
      lock.unlock();
      serve(Due{now, 0, nullptr});
      flush_truth();
      lock.lock();
      continue;
    }
    if (!due_.empty() && due_.top().when_ns <= now) {
      const Due due = due_.top();
      due_.pop();
      lock.unlock();
      serve(due);
      lock.lock();
      continue;
    }
    std::int64_t wake_ns = keeps_truth_ ? next_truth_ns : INT64_MAX;
    if (!due_.empty()) wake_ns = std::min(wake_ns, due_.top().when_ns);
    if (wake_ns == INT64_MAX) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::nanoseconds(wake_ns - now));
    }
  }
}

void CallbackThread::serve(const Due& due) {
  Engine& engine = Engine::get();
  if (Operation* operation = due.operation) {
    if (operation->stream_callback != nullptr) {
      operation->stream_callback(static_cast<Stream*>(operation->record.stream), operation->error,
                                 operation->host_data);
    } else {
      operation->host_function(operation->host_data);
    }
    engine.host_function_ended(operation);
  }
  {
    const Lock guard = engine.lock();
    engine.retire_due(now_ns());
  }
  engine.deliver(false);
}

}  // namespace simgpu
