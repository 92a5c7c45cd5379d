// SPDX-License-Identifier: Apache-2.0
//
// The C++ API of libgpudiag (C++17): a header over the C ABI of gpudiag.h, so that no C++ symbol
// crosses the library's border and any compiler's standard library will do.
//
//     gpudiag::Session session;                       // options from GPUDIAG_* and defaults
//     for (auto& batch : loader) {
//       {
//         gpudiag::Range range{"next batch", gpudiag::Cause::kDataLoading};
//         batch = loader.next();
//       }
//       train(batch);
//       gpudiag::step();                              // an iteration ends, the next begins
//     }
//
// Everything said in gpudiag.h holds here: any thread, harmless without a session, never throws.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "gpudiag/gpudiag.h"

namespace gpudiag {
// Versioned, so that these names never meet those of the library's own sources or of a later header.
inline namespace v1 {

/// Causes of idle time. `kNone`: the table of range names decides.
enum class Cause {
  kNone = GPUDIAG_CAUSE_NONE,
  kDataLoading = GPUDIAG_CAUSE_DATA_LOADING,
  kCommunicationWait = GPUDIAG_CAUSE_COMMUNICATION_WAIT,
  kLaunchOverhead = GPUDIAG_CAUSE_LAUNCH_OVERHEAD,
  kSync = GPUDIAG_CAUSE_SYNC,
  kAllocation = GPUDIAG_CAUSE_ALLOCATION,
  kCheckpoint = GPUDIAG_CAUSE_CHECKPOINT,
  kHost = GPUDIAG_CAUSE_HOST,
  kDependency = GPUDIAG_CAUSE_DEPENDENCY,
  kUnknown = GPUDIAG_CAUSE_UNKNOWN,
};

/// Options of a session, named like the environment variables GPUDIAG_<NAME> that they override.
/// What is left empty comes from the environment, then from the defaults.
struct Options {
  std::optional<std::string> enabled;    ///< "on", "off"
  std::optional<std::string> log;        ///< "on", "every", "off" or a file
  std::optional<std::string> dir;        ///< folder for gpudiag.iteration/1 files and recordings
  std::optional<std::string> record;     ///< "on", "off"
  std::optional<std::string> callbacks;  ///< "auto", "on", "off"
  std::optional<std::string> nvtx;       ///< "on", "off"
  std::optional<std::string> ranges;     ///< rules `regex=cause`, separated by ';'
  std::optional<std::string> iteration;  ///< regex: ranges so named are iterations
  std::optional<std::string> cupti;      ///< path of libcupti
  std::optional<double> budget;          ///< percent of host time that gpudiag may take
  std::optional<std::int32_t> rank;      ///< rank of this process in the job
  std::optional<std::string> watch;      ///< "on", "off"
};

/// Starts the process's session, or joins the one that is there. See gpudiag_start().
inline gpudiag_status start(const Options& options = {}) noexcept {
  const auto text = [](const std::optional<std::string>& value) { return value ? value->c_str() : nullptr; };
  gpudiag_options c_options;
  gpudiag_options_init(&c_options, sizeof c_options);
  c_options.enabled = text(options.enabled);
  c_options.log = text(options.log);
  c_options.dir = text(options.dir);
  c_options.record = text(options.record);
  c_options.callbacks = text(options.callbacks);
  c_options.nvtx = text(options.nvtx);
  c_options.ranges = text(options.ranges);
  c_options.iteration = text(options.iteration);
  c_options.cupti = text(options.cupti);
  if (options.budget) c_options.budget = *options.budget;
  if (options.rank) c_options.rank = *options.rank;
  c_options.watch = text(options.watch);
  return gpudiag_start(&c_options);
}

/// Ends the session and writes what is left; waits at most two seconds. See gpudiag_stop().
inline void stop() noexcept { gpudiag_stop(); }

/// A session that lasts as long as the object. Where one was running already (injected, say) the
/// object joins it and leaves it running.
class Session {
 public:
  explicit Session(const Options& options = {}) noexcept : status_{start(options)} {}
  ~Session() {
    if (status_ == GPUDIAG_OK) stop();
  }
  Session(Session&& other) noexcept : status_{std::exchange(other.status_, GPUDIAG_OFF)} {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  Session& operator=(Session&&) = delete;

  /// True while this process's iterations are recorded.
  bool active() const noexcept { return gpudiag_active() != 0; }
  gpudiag_status status() const noexcept { return status_; }

 private:
  gpudiag_status status_;
};

/// An iteration ends here and the next begins. [hot]
inline void step() noexcept { gpudiag_step(); }
/// The same with the job's own number for the iteration that ends. [hot]
inline void step(std::uint64_t number) noexcept { gpudiag_step_number(number); }

/// The calling thread is inside `name` until the object goes. Objects of a thread nest. [hot]
class Range {
 public:
  explicit Range(const char* name, Cause cause = Cause::kNone) noexcept {
    gpudiag_range_push(name, static_cast<gpudiag_cause>(cause));
  }
  explicit Range(const std::string& name, Cause cause = Cause::kNone) noexcept
      : Range{name.c_str(), cause} {}
  ~Range() { gpudiag_range_pop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

/// The session's clock, CLOCK_MONOTONIC, which std::chrono::steady_clock reads too.
inline std::chrono::nanoseconds now() noexcept { return std::chrono::nanoseconds{gpudiag_now_ns()}; }

/// Reports after the fact that the calling thread was inside `name` in [start, end) of now(). [hot]
inline void annotate(const char* name, Cause cause, std::chrono::nanoseconds start,
                     std::chrono::nanoseconds end) noexcept {
  gpudiag_annotate(name, static_cast<gpudiag_cause>(cause), start.count(), end.count());
}

/// The latest iteration that was closed; empty until there is one.
inline std::optional<gpudiag_iteration> last() noexcept {
  gpudiag_iteration iteration{};
  iteration.size = sizeof iteration;
  if (gpudiag_last(&iteration) == 0) return std::nullopt;
  return iteration;
}

namespace detail {

// The callback of on_iteration(), behind a function that lets no exception out: the library's thread
// has another C++ run-time under it, which cannot catch this program's.
struct IterationCallback {
  std::mutex mutex;
  gpudiag_iteration_callback call = nullptr;
  void* user = nullptr;
  std::atomic<std::uint64_t> failures{0};  // relaxed: a counter, orders nothing
};
inline IterationCallback iteration_callback;

inline void drop_iteration_callback(gpudiag_iteration_callback failed, const char* why) noexcept {
  if (iteration_callback.failures.fetch_add(1, std::memory_order_relaxed) == 0)
    std::fprintf(stderr, "gpudiag on_iteration: the callback threw (%s) and is not called any more\n", why);
  const std::lock_guard<std::mutex> lock{iteration_callback.mutex};
  if (iteration_callback.call == failed) iteration_callback.call = nullptr;
}

inline void call_iteration_callback(const gpudiag_iteration* iteration, void*) noexcept {
  gpudiag_iteration_callback call = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard<std::mutex> lock{iteration_callback.mutex};
    call = iteration_callback.call;
    user = iteration_callback.user;
  }
  if (call == nullptr) return;
#if defined(__cpp_exceptions)
  try {
    call(iteration, user);
  } catch (const std::exception& failure) {
    drop_iteration_callback(call, failure.what());
  } catch (...) {
    drop_iteration_callback(call, "no std::exception");
  }
#else
  call(iteration, user);
#endif
}

}  // namespace detail

/// Calls `callback` for every iteration that closes, on gpudiag's own thread. See
/// gpudiag_on_iteration(). One that throws is called no more, which is said once and counted.
inline void on_iteration(gpudiag_iteration_callback callback, void* user = nullptr) noexcept {
  {
    const std::lock_guard<std::mutex> lock{detail::iteration_callback.mutex};
    detail::iteration_callback.call = callback;
    detail::iteration_callback.user = user;
  }
  gpudiag_on_iteration(callback == nullptr ? nullptr : detail::call_iteration_callback, nullptr);
}

/// How often a callback of on_iteration() threw.
inline std::uint64_t failed_callbacks() noexcept {
  return detail::iteration_callback.failures.load(std::memory_order_relaxed);
}

}  // namespace v1
}  // namespace gpudiag
