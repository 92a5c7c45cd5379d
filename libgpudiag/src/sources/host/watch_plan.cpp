// SPDX-License-Identifier: Apache-2.0
#include "sources/host/watch_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace gpudiag {
namespace {

// A job's rhythm may pause (an evaluation, a checkpoint) without having changed.
constexpr DurationNs kWatchedFor = seconds(5);
// Calls come with the flushes of 200 ms: after this time without one there was none.
constexpr DurationNs kSilence = milliseconds(300);
// Four looks tell what most of a gap was.
constexpr std::int64_t kLooksPerGap = 4;
// Below this share of wall nobody would act on what is found.
constexpr std::int64_t kLeastShare = 100;  // one in so many
// Of silences nobody knows whether the GPU was idle, so more of them are asked for, and again and again.
constexpr std::int64_t kLeastShareOfSilence = 20;
constexpr DurationNs kSilentAgain = seconds(1);
constexpr std::size_t kThreads = 4;

DurationNs clamped(DurationNs period) { return std::clamp(period, kShortestPeriod, kLongestPeriod); }

/// Host time that somebody may explain. Our own never is.
bool is_explained_by_looks(const Evidence& evidence) {
  if (evidence.cause != Cause::kHost && evidence.cause != Cause::kDataLoading) return false;
  return evidence.charged > DurationNs{} && evidence.sub_cause != SubCause::kGarbageCollection &&
         evidence.sub_cause != SubCause::kCompile && evidence.what != "gpudiag";
}

}  // namespace

void WatchPlan::watch(ThreadId thread, DurationNs period, TimePoint until) {
  const auto known = std::find_if(watched_.begin(), watched_.end(),
                                  [&](const Watched& other) { return other.thread == thread; });
  if (known != watched_.end()) {
    known->period = period;
    known->until = std::max(known->until, until);
  } else if (watched_.size() < kThreads) {
    watched_.push_back({thread, period, until});
  }
}

void WatchPlan::iteration(const IterationLedger& ledger, TimePoint at) {
  ledger_at_ = at;
  for (const Evidence& evidence : ledger.evidence) {
    if (!is_explained_by_looks(evidence)) continue;
    const DurationNs mean{evidence.host.ns / static_cast<std::int64_t>(std::max<std::uint64_t>(1, evidence.count))};
    if (mean < kLongGap || evidence.charged.ns * kLeastShare < ledger.wall.ns) continue;
    // A long iteration comes again as late as it did.
    const TimePoint until = at + std::max(kWatchedFor, ledger.wall + ledger.wall);
    watch(evidence.thread, clamped({mean.ns / kLooksPerGap}), until);
    if (evidence.cause == Cause::kDataLoading) workers_until_ = std::max(workers_until_, until);
  }
}

// The thread that ends a silence is the one that was held up.
void WatchPlan::find_silences(TimePoint at) {
  std::sort(busy_.begin(), busy_.end(), [](const Busy& a, const Busy& b) { return a.time.start < b.time.start; });
  struct Silent {
    ThreadId thread{};
    DurationNs length;
    std::int64_t count = 0;
  };
  std::vector<Silent> silent;
  for (const Busy& busy : busy_) {
    if (last_call_ != kTimeMin && busy.time.start - last_call_ >= kLongGap) {
      auto of = std::find_if(silent.begin(), silent.end(), [&](const Silent& s) { return s.thread == busy.thread; });
      if (of == silent.end()) of = silent.insert(of, {busy.thread, {}, 0});
      of->length += busy.time.start - last_call_;
      ++of->count;
    }
    if (busy.time.end > last_call_) {
      last_call_ = busy.time.end;
      last_thread_ = busy.thread;
    }
  }
  busy_.clear();
  const TimePoint since = std::exchange(ticked_, at);
  if (since == kTimeMin || (ledger_at_ != kTimeMin && at - ledger_at_ < kWatchedFor)) return;
  for (const Silent& of : silent) {
    if (of.length.ns * kLeastShareOfSilence < (at - since).ns) continue;
    // Once is a hiccup.
    const TimePoint before = std::exchange(silent_at_, at);
    if (before == kTimeMin || at - before > kSilentAgain) continue;
    watch(of.thread, clamped({of.length.ns / of.count / kLooksPerGap}), at + kSilentAgain);
    workers_until_ = std::max(workers_until_, at + kSilentAgain);
  }
}

void WatchPlan::tick(TimePoint at) {
  std::erase_if(watched_, [&](const Watched& watched) { return watched.until <= at; });
  find_silences(at);
  follow_silence(at);
}

void WatchPlan::follow_silence(TimePoint at) {
  if (last_call_ == kTimeMin || at - last_call_ < kSilence) return;
  // A job that has stopped using the GPU is looked at less and less often.
  const DurationNs silent = at - last_call_;
  const DurationNs period = std::min(seconds(1), std::max(kLongestPeriod, DurationNs{silent.ns / 40}));
  if (std::none_of(watched_.begin(), watched_.end(),
                   [&](const Watched& other) { return other.thread == last_thread_ && other.period <= period; }))
    watch(last_thread_, period, at + period + kSilence);
  workers_until_ = std::max(workers_until_, at + kSilence);
}

std::optional<DurationNs> WatchPlan::period() const {
  std::optional<DurationNs> shortest;
  for (const Watched& watched : watched_)
    if (!shortest || watched.period < *shortest) shortest = watched.period;
  return shortest;
}

}  // namespace gpudiag
