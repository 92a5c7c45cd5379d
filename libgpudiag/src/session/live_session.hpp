// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: life in the process.
// The session of this copy of the library: its state, its drain thread, its end at exit and its
// silence in forked children.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "gpudiag/gpudiag.h"
#include "session/pipeline.hpp"

namespace gpudiag {

using OptionOverrides = std::map<std::string, std::string, std::less<>>;

/// States: idle → running → idle again, or forked (for ever: the child of a process with a session).
/// stop() and everything behind it do nothing unless running, so no failure of a start can reach them.
/// The one instance is leaked: CUPTI's threads and the job's may be inside us while the process dies.
class LiveSession {
 public:
  static LiveSession& instance();

  /// GPUDIAG_RUNNING where it runs already. [any thread]
  gpudiag_status start(const OptionOverrides& overrides);
  /// Waits two seconds for the drain thread at the most, then leaves it behind. [any thread]
  void stop();
  /// [hot] [any thread]
  bool active() const noexcept { return state_.load(std::memory_order_relaxed) == State::kRunning; }
  /// True in a child that was forked while a session ran. [any thread]
  bool forked() const noexcept { return state_.load(std::memory_order_relaxed) == State::kForked; }

  /// Until resume(), called as often, CUPTI belongs to `who`; also before a session and between sessions.
  /// Returns when that is so, at the latest after two seconds. Both return at once on our own thread (then
  /// it happens soon) and where there is no session. [any thread]
  void stand_aside(std::string_view who);
  /// Without a stand_aside() before it: whoever took CUPTI unasked is known to have ended.
  void resume();
  /// Takes over calls of stand_aside() that another copy of the library has counted.
  void add_asides(unsigned count, std::string_view who);
  /// Gives them away.
  unsigned take_asides();

  /// Whether the caller is the session's own thread, in a callback: it cannot start or stop what it
  /// is part of. Says so, once. [any thread]
  bool refuses_own_thread();

  LatestIteration& latest() { return latest_; }
  /// Whether there has been a session at all. [any thread]
  bool ever_started() const noexcept { return ever_started_.load(std::memory_order_relaxed); }

 private:
  enum class State : std::uint32_t { kIdle, kStarting, kRunning, kStopping, kForked };

  LiveSession() = default;
  gpudiag_status start_locked(const OptionOverrides& overrides);
  void install_process_hooks();
  bool start_drain(const Settings& settings, const SessionInfo& info);
  void drain();
  void drain_until_stopped();
  void follow_asides();
  bool on_drain_thread() const;
  void wait_for_drain(std::unique_lock<std::mutex>& lock, bool aside);
  static void at_exit();
  static void in_child();

  std::mutex control_;                       // one start or stop at a time; never held into CUPTI's callbacks
  std::atomic<State> state_{State::kIdle};   // release on change, so that a reader of kRunning sees the session
  std::atomic<bool> ever_started_{false};    // relaxed: says nothing of what the session holds
  NameTable names_;
  std::unique_ptr<CuptiSource> source_;
  std::unique_ptr<Pipeline> pipeline_;
  LatestIteration latest_;

  std::mutex wake_;                          // guards what follows, up to drained_
  std::condition_variable changed_;
  bool stop_asked_ = false;
  unsigned asides_ = 0;                      // calls of stand_aside() without their resume()
  std::string aside_for_;
  bool resume_asked_ = false;                // though asides_ is 0
  bool is_aside_ = false;                    // what the drain thread has made of it
  bool drained_ = true;                      // the drain thread has closed the books (or never began)
  std::atomic<std::thread::native_handle_type> drain_thread_{};
  bool hooks_installed_ = false;
  bool told_busy_ = false;
  std::atomic<bool> told_own_thread_{false};  // relaxed: at worst it is said twice
};

}  // namespace gpudiag
