// SPDX-License-Identifier: Apache-2.0
#include "session/live_session.hpp"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "fmt/format.h"
#include "sources/cupti/foreign_tools.hpp"
#include "sources/host/now.hpp"
#include "sources/host/thread_log.hpp"
#include "timeline/range_table.hpp"

#ifndef GPUDIAG_VERSION
#error "GPUDIAG_VERSION comes from the build"
#endif

namespace gpudiag {
namespace {

constexpr auto kFlushPeriod = std::chrono::milliseconds(200);
// The thread logs hold some 1,300 ranges a thread: twenty times a second serves 26,000 a second, and
// two hundred times, while a log was found more than a quarter full, 260,000.
constexpr auto kLogPeriod = std::chrono::milliseconds(50);
constexpr auto kBusyLogPeriod = std::chrono::milliseconds(5);
constexpr auto kExitPatience = std::chrono::milliseconds(2000);
constexpr auto kAsidePatience = std::chrono::milliseconds(2000);
constexpr std::size_t kStackBytes = 1u << 20;

thread_local bool t_own_thread = false;  ///< a session's drain thread

/// Both clocks are CLOCK_MONOTONIC.
std::chrono::steady_clock::time_point steady_time(TimePoint at) {
  return std::chrono::steady_clock::time_point{std::chrono::nanoseconds{at.ns}};
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

SessionInfo describe_process(const Settings& settings) {
  SessionInfo info;
  timespec real{};
  clock_gettime(CLOCK_REALTIME, &real);
  info.origin_unix_ns = std::int64_t{real.tv_sec} * 1'000'000'000 + real.tv_nsec - now().ns;
  info.rank = settings.rank ? *settings.rank : rank_of_launcher(environment_variable);
  info.host = host_name();
  info.pid = static_cast<std::uint64_t>(getpid());
  info.source = "live";
  info.version = GPUDIAG_VERSION;
  info.torch = torch_loaded();
  info.options = settings.given;
  return info;
}

/// Our threads take no signal of the job's: its handlers must run on its own threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

LiveSession& LiveSession::instance() {
  static LiveSession* const session = new LiveSession;
  return *session;
}

gpudiag_status LiveSession::start(const OptionOverrides& overrides) {
  if (forked()) return GPUDIAG_FORKED;
  if (active()) return GPUDIAG_RUNNING;
  const std::lock_guard lock{control_};
  if (forked()) return GPUDIAG_FORKED;
  if (active()) return GPUDIAG_RUNNING;
  return start_locked(overrides);
}

gpudiag_status LiveSession::start_locked(const OptionOverrides& overrides) {
  std::vector<std::string> complaints;
  const Settings settings = read_settings(overrides, environment_variable, complaints);
  if (!settings.enabled) return GPUDIAG_OFF;
  {
    const std::lock_guard lock{wake_};
    if (!drained_) {
      if (!std::exchange(told_busy_, true)) complain("cannot start again yet: the last session is still being closed");
      return GPUDIAG_FAILED;
    }
  }
  const RangeTable rules{settings.ranges, settings.iteration, names_};
  complaints.insert(complaints.end(), rules.errors().begin(), rules.errors().end());
  for (const std::string& complaint : complaints) complain(complaint);
  state_.store(State::kStarting, std::memory_order_release);
  install_process_hooks();
  if (!source_) source_ = std::make_unique<CuptiSource>(names_);
  CuptiSettings cupti;
  cupti.path = settings.cupti;
  cupti.callbacks = settings.callbacks == Choice::kAuto ? CallbackMode::kAuto
                    : settings.callbacks == Choice::kOn ? CallbackMode::kOn
                                                        : CallbackMode::kOff;
  cupti.markers = settings.nvtx && nvtx_leads_to_cupti();
  {
    const std::lock_guard lock{wake_};
    is_aside_ = asides_ > 0;
    resume_asked_ = false;
  }
  source_->start(cupti, is_aside_);  // what it cannot do stands in its notes; marks and ranges are heard all the same
  if (!start_drain(settings, describe_process(settings))) {
    source_->stop();
    state_.store(State::kIdle, std::memory_order_release);
    return GPUDIAG_FAILED;
  }
  set_host_log(true);
  ever_started_.store(true, std::memory_order_relaxed);
  state_.store(State::kRunning, std::memory_order_release);
  return GPUDIAG_OK;
}

bool LiveSession::start_drain(const Settings& settings, const SessionInfo& info) {
  ThreadLogs::take_lost();  // of before the session
  pipeline_ = std::make_unique<Pipeline>(settings, info, names_, *source_, latest_, now());
  {
    const std::lock_guard lock{wake_};
    if (is_aside_) pipeline_->stand_aside(aside_for_);
    if (const std::string nvtx = nvtx_injection();
        settings.nvtx && !nvtx.empty() && !nvtx_leads_to_cupti() && !nvtx.starts_with("libgpudiag"))
      pipeline_->note("nvtx_elsewhere", fmt::format("NVTX leads to {}: its ranges are not seen here", nvtx), false);
    stop_asked_ = false;
    drained_ = false;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  int error = 0;
  {
    const AllSignalsBlocked blocked;  // inherited by the thread
    error = pthread_create(
        &thread, &attributes,
        [](void* session) -> void* {
          static_cast<LiveSession*>(session)->drain();
          return nullptr;
        },
        this);
  }
  pthread_attr_destroy(&attributes);
  if (error == 0) return true;
  complain(fmt::format("cannot start: no thread can be made (error {})", error));
  const std::lock_guard lock{wake_};
  drained_ = true;
  return false;
}

bool LiveSession::refuses_own_thread() {
  if (!t_own_thread) return false;
  if (!told_own_thread_.exchange(true, std::memory_order_relaxed))
    complain("gpudiag_start() and gpudiag_stop() do nothing inside a callback of gpudiag_on_iteration()");
  return true;
}

void LiveSession::drain() {
  t_own_thread = true;
  drain_thread_.store(pthread_self(), std::memory_order_relaxed);
  pthread_setname_np(pthread_self(), "gpudiag");
  try {
    drain_until_stopped();
    pipeline_->finish(now() + DurationNs{std::chrono::nanoseconds(kExitPatience).count()});
  } catch (const std::exception& failure) {
    set_host_log(false);
    source_->stop();
    complain(fmt::format("stops recording: {}", failure.what()));
  }
  const std::lock_guard lock{wake_};
  drained_ = true;
  changed_.notify_all();
}

void LiveSession::drain_until_stopped() {
  auto next_flush = std::chrono::steady_clock::now();
  auto next_round = next_flush;
  for (;;) {
    const auto at = std::chrono::steady_clock::now();
    if (at >= next_round) {
      const bool flush = at >= next_flush;
      if (flush) next_flush = at + kFlushPeriod;
      pipeline_->round(flush);
      next_round = std::chrono::steady_clock::now() + (pipeline_->logs_busy() ? kBusyLogPeriod : kLogPeriod);
    }
    follow_asides();
    pipeline_->look();
    std::unique_lock lock{wake_};
    if (stop_asked_) return;
    if (pipeline_->backlog()) {
      next_round = {};
      continue;
    }
    changed_.wait_until(lock, std::min(next_round, steady_time(pipeline_->look_due())),
                        [this] { return stop_asked_ || resume_asked_ || is_aside_ != (asides_ > 0); });
    if (stop_asked_) return;
  }
}

// No lock is held while CUPTI is called.
void LiveSession::follow_asides() {
  bool wanted = false;
  bool again = false;
  std::string who;
  {
    const std::lock_guard lock{wake_};
    wanted = asides_ > 0;
    again = std::exchange(resume_asked_, false);
    if (wanted == is_aside_ && !again) return;
    who = aside_for_;
  }
  if (wanted) pipeline_->stand_aside(who);
  else if (again) pipeline_->resume_unasked();
  else pipeline_->resume();
  const std::lock_guard lock{wake_};
  is_aside_ = wanted;
  changed_.notify_all();
}

bool LiveSession::on_drain_thread() const {
  return pthread_equal(pthread_self(), drain_thread_.load(std::memory_order_relaxed)) != 0;
}

void LiveSession::wait_for_drain(std::unique_lock<std::mutex>& lock, bool aside) {
  changed_.notify_all();
  if (!active() || on_drain_thread()) return;
  changed_.wait_for(lock, kAsidePatience, [&] {
    return drained_ || stop_asked_ || (is_aside_ == aside && !resume_asked_) || (asides_ > 0) != aside;
  });
}

void LiveSession::stand_aside(std::string_view who) {
  if (forked()) return;
  std::unique_lock lock{wake_};
  if (asides_++ == 0) aside_for_ = who;
  wait_for_drain(lock, true);
}

void LiveSession::resume() {
  if (forked()) return;
  std::unique_lock lock{wake_};
  if (asides_ == 0) resume_asked_ = active();
  else if (--asides_ > 0) return;
  wait_for_drain(lock, false);
}

void LiveSession::add_asides(unsigned count, std::string_view who) {
  const std::lock_guard lock{wake_};
  if (asides_ == 0) aside_for_ = who;
  asides_ += count;
}

unsigned LiveSession::take_asides() {
  const std::lock_guard lock{wake_};
  return std::exchange(asides_, 0);
}

void LiveSession::stop() {
  if (!active()) return;
  if (on_drain_thread()) return;
  const std::lock_guard lock{control_};
  if (!active()) return;
  state_.store(State::kStopping, std::memory_order_release);
  std::unique_lock wait{wake_};
  stop_asked_ = true;
  changed_.notify_all();
  const bool drained = changed_.wait_for(wait, kExitPatience, [this] { return drained_; });
  wait.unlock();
  set_host_log(false);
  if (drained) pipeline_.reset();
  else complain("the last iterations are not ready within two seconds; not waiting any longer");
  state_.store(State::kIdle, std::memory_order_release);
}

void LiveSession::install_process_hooks() {
  if (hooks_installed_) return;
  hooks_installed_ = true;
  pthread_atfork(nullptr, nullptr, in_child);
  std::atexit(at_exit);
  at_quick_exit(at_exit);
}

void LiveSession::at_exit() { instance().stop(); }

void LiveSession::in_child() {
  LiveSession& session = instance();
  if (session.state_.load(std::memory_order_relaxed) == State::kIdle) return refresh_after_fork();
  // No thread of ours is here, and any lock may have been held: nothing is touched any more.
  session.state_.store(State::kForked, std::memory_order_relaxed);
  set_host_log(false);
}

}  // namespace gpudiag
