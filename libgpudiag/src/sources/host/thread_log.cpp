// SPDX-License-Identifier: Apache-2.0
#include "sources/host/thread_log.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "sources/host/now.hpp"

namespace gpudiag {
namespace {

// The first threads that speak are the trainer's. Jobs with hundreds of them (pools as wide as the
// machine) get short logs for the rest: 40 MiB for all at the most.
constexpr std::size_t kLongLogs = 64;
constexpr std::size_t kLongRing = 128 * 1024;  // some 1,300 ranges
constexpr std::size_t kShortRing = 16 * 1024;
constexpr std::size_t kLogBytes = 20 * 1024;   // beside its ring
constexpr std::size_t kLogsLimit = 1024;
static_assert(sizeof(ThreadLog) <= kLogBytes);

// Two clock reads for each of our calls would double their cost: measure one in this many.
constexpr std::uint32_t kOwnSample = 16;
constexpr DurationNs kOwnWorthTelling = microseconds(20);

std::atomic<bool> g_on{false};              // relaxed: a late reader writes or drops one message
std::atomic<std::size_t> g_made{0};         // release: a log is whole before it is counted
std::atomic<ThreadLog*> g_logs[kLogsLimit];
std::atomic<std::uint64_t> g_lost{0};       // relaxed: a counter

struct WatchedName {
  std::size_t length;
  char text[kRangeTextKept];
};
WatchedName g_watched[kWatchedWaits];
std::atomic<std::uint32_t> g_watched_count{0};  // release: a name is whole before it is counted

std::string_view cut(std::string_view text) { return text.substr(0, kRangeTextKept); }

bool is_watched(std::string_view text) noexcept {
  const std::uint32_t count = g_watched_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i)
    if (cut(text) == std::string_view{g_watched[i].text, g_watched[i].length}) return true;
  return false;
}

ProcessorUse use_of_this_thread() noexcept {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto ns = [](const timeval& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_usec * 1000; };
  return {usage.ru_nvcsw, {ns(usage.ru_utime) + ns(usage.ru_stime)}};
}

/// A thread that runs most of the time may be waiting in a loop, or working: that is not told here.
bool waited_for_a_processor(const ProcessorUse& before, DurationNs length) noexcept {
  const ProcessorUse after = use_of_this_thread();
  return after.blocked == before.blocked && (after.running - before.running).ns * 2 < length.ns;
}

// The marker for a thread that has gone through its destructors: it gets no log any more.
ThreadLog* const kGone = reinterpret_cast<ThreadLog*>(std::uintptr_t{1});

thread_local ThreadLog* t_log = nullptr;

pthread_key_t g_key;

std::byte* map_bytes(std::size_t size) noexcept {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

ThreadLog::ThreadLog(std::byte* ring_storage, std::uint32_t ring_bytes) noexcept : ring_{ring_storage, ring_bytes} {}

void ThreadLog::refresh_thread() noexcept { thread_ = static_cast<std::uint32_t>(syscall(SYS_gettid)); }

void ThreadLog::adopt() noexcept {
  refresh_thread();
  depth_ = too_deep_ = 0;
  own_ = {};
}

void ThreadLog::push(std::uintptr_t domain, std::string_view text, RangeSource source, std::uint8_t cause,
                     std::uint64_t payload) noexcept {
  const TimePoint start = now();
  if (depth_ == kDepthKept) {
    ++too_deep_;
    return;
  }
  OpenRange& open = open_[depth_++];
  open.start = start;
  open.payload = payload;
  open.domain = domain;
  open.source = source;
  open.cause = cause;
  open.text_bytes = static_cast<std::uint8_t>(std::min(text.size(), kRangeTextKept));
  open.watched = is_watched(text);
  if (open.watched) open.before = use_of_this_thread();
  if (open.text_bytes != 0) std::memcpy(open.text, text.data(), open.text_bytes);
  if (source != RangeSource::kOperator) show();
  count_own(start);
}

void ThreadLog::pop(std::uintptr_t domain) noexcept {
  const TimePoint end = now();
  if (too_deep_ > 0) {
    --too_deep_;
    return;
  }
  std::uint32_t at = depth_;
  while (at > 0 && open_[at - 1].domain != domain) --at;
  if (at == 0) return;  // pushed before we listened, or never
  const OpenRange& open = open_[at - 1];
  const bool not_blocked = open.watched && waited_for_a_processor(open.before, end - open.start);
  write({.start = open.start,
         .end = end,
         .value = open.payload,
         .flags = not_blocked ? record_flag::kNotBlocked : std::uint16_t{0},
         .text_bytes = open.text_bytes,
         .kind = RecordKind::kRange,
         .range = open.source,
         .cause = open.cause},
        {open.text, open.text_bytes});
  const bool shown = open.source != RangeSource::kOperator;
  // Nearly always the top; otherwise the ranges above belong to other domains and move down.
  std::copy(open_.begin() + at, open_.begin() + depth_, open_.begin() + (at - 1));
  --depth_;
  if (shown) show();
  count_own(end);
}

void ThreadLog::show() noexcept {
  std::uint32_t at = depth_;
  while (at > 0 && open_[at - 1].source == RangeSource::kOperator) --at;
  const std::uint32_t version = shown_.version.load(std::memory_order_relaxed);
  shown_.version.store(version + 1, std::memory_order_relaxed);
  // release, of each word: whoever sees new contents sees the odd version, or a later one.
  shown_.thread.store(thread_, std::memory_order_release);
  std::uint32_t size = 0;
  if (at > 0) {
    const OpenRange& open = open_[at - 1];
    size = std::min<std::uint32_t>(open.text_bytes, sizeof shown_.words);
    shown_.start.store(open.start.ns, std::memory_order_release);
    for (std::uint32_t w = 0; w * 8 < size; ++w) {
      std::uint64_t word = 0;
      std::memcpy(&word, open.text + w * 8, std::min<std::uint32_t>(8, size - w * 8));
      shown_.words[w].store(word, std::memory_order_release);
    }
  }
  shown_.size.store(size, std::memory_order_release);
  shown_.version.store(version + 2, std::memory_order_release);
}

std::optional<OpenNow> ThreadLogs::open_now(std::uint32_t thread) {
  for (std::size_t i = 0; i < made_logs(); ++i) {
    const ThreadLog* log = log_at(i);
    if (log == nullptr) continue;
    const ThreadLog::Shown& shown = log->shown_;
    for (int attempt = 0; attempt < 4; ++attempt) {
      const std::uint32_t version = shown.version.load(std::memory_order_acquire);
      if (version % 2 != 0 || shown.thread.load(std::memory_order_acquire) != thread) continue;
      const std::size_t size = std::min<std::size_t>(shown.size.load(std::memory_order_acquire), sizeof shown.words);
      OpenNow found{std::string(size, '\0'), TimePoint{shown.start.load(std::memory_order_acquire)}};
      for (std::size_t w = 0; w * 8 < size; ++w) {
        const std::uint64_t word = shown.words[w].load(std::memory_order_acquire);
        std::memcpy(found.text.data() + w * 8, &word, std::min<std::size_t>(8, size - w * 8));
      }
      if (shown.version.load(std::memory_order_relaxed) != version) continue;
      if (size == 0) break;
      return found;
    }
  }
  return std::nullopt;
}

std::string_view ThreadLog::open_text(std::uintptr_t domain) const noexcept {
  for (std::uint32_t at = depth_; at > 0; --at)
    if (open_[at - 1].domain == domain) return {open_[at - 1].text, open_[at - 1].text_bytes};
  return {};
}

void ThreadLog::write(HostMessage message, std::string_view text) noexcept {
  if (message.thread == 0) message.thread = thread_;
  message.text_bytes = static_cast<std::uint16_t>(std::min(text.size(), kRangeTextKept));
  if (!ring_.push(&message, sizeof message, text.data(), message.text_bytes))
    lost_.fetch_add(1, std::memory_order_relaxed);
}

void ThreadLog::count_own(TimePoint entered) noexcept {
  if (++calls_ % kOwnSample != 0) return;
  const TimePoint left = now();
  own_.ns += (left - entered).ns * kOwnSample;
  if (own_ < kOwnWorthTelling) return;
  write({.start = left - own_, .end = left, .kind = RecordKind::kOwn}, {});
  own_ = {};
}

ThreadLog* ThreadLogs::mine() noexcept {
  if (t_log != nullptr) return t_log == kGone ? nullptr : t_log;
  static const bool key_made = [] {
    const auto leave = [](void* log) {
      t_log = kGone;
      // release: what the thread wrote is seen by the next owner. The drain thread need not be done
      // with it: messages say whose they are.
      static_cast<ThreadLog*>(log)->state_.store(ThreadLog::State::kFree, std::memory_order_release);
    };
    return pthread_key_create(&g_key, leave) == 0;
  }();
  ThreadLog* log = free_log();
  if (log == nullptr) log = new_log();
  if (log == nullptr) {
    g_lost.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  log->adopt();
  t_log = log;
  if (key_made) pthread_setspecific(g_key, log);
  return log;
}

ThreadLog* ThreadLogs::free_log() noexcept {
  const std::size_t made = made_logs();
  for (std::size_t i = 0; i < made; ++i) {
    ThreadLog* log = log_at(i);
    auto free = ThreadLog::State::kFree;
    // acquire: the last owner is done with it
    if (log != nullptr && log->state_.compare_exchange_strong(free, ThreadLog::State::kUsed, std::memory_order_acquire))
      return log;
  }
  return nullptr;
}

ThreadLog* ThreadLogs::new_log() noexcept {
  std::size_t slot = g_made.load(std::memory_order_relaxed);
  do {
    if (slot == kLogsLimit) return nullptr;
  } while (!g_made.compare_exchange_weak(slot, slot + 1, std::memory_order_acq_rel));
  const std::size_t ring_bytes = slot < kLongLogs ? kLongRing : kShortRing;
  std::byte* memory = map_bytes(kLogBytes + ring_bytes);
  if (memory == nullptr) return nullptr;  // the slot stays empty
  ThreadLog* log = new (memory) ThreadLog{memory + kLogBytes, static_cast<std::uint32_t>(ring_bytes)};
  log->state_.store(ThreadLog::State::kUsed, std::memory_order_relaxed);
  g_logs[slot].store(log, std::memory_order_release);
  return log;
}

std::size_t ThreadLogs::made_logs() noexcept { return g_made.load(std::memory_order_acquire); }
ThreadLog* ThreadLogs::log_at(std::size_t index) noexcept { return g_logs[index].load(std::memory_order_acquire); }

std::uint64_t ThreadLogs::take_lost() noexcept {
  std::uint64_t lost = g_lost.exchange(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < made_logs(); ++i)
    if (ThreadLog* log = log_at(i)) lost += log->take_lost();
  return lost;
}

void watch_wait(std::string_view name) noexcept {
  const std::uint32_t count = g_watched_count.load(std::memory_order_relaxed);
  if (count == kWatchedWaits || is_watched(name)) return;
  WatchedName& place = g_watched[count];
  place.length = cut(name).copy(place.text, kRangeTextKept);
  g_watched_count.store(count + 1, std::memory_order_release);
}

bool host_log_on() noexcept { return g_on.load(std::memory_order_relaxed); }
void set_host_log(bool on) noexcept { g_on.store(on, std::memory_order_relaxed); }

void log_push(std::uintptr_t domain, std::string_view text, RangeSource source, std::uint8_t cause,
              std::uint64_t payload) noexcept {
  if (!host_log_on()) return;
  if (ThreadLog* log = ThreadLogs::mine()) log->push(domain, text, source, cause, payload);
}

void log_pop(std::uintptr_t domain) noexcept {
  if (!host_log_on()) return;
  if (ThreadLog* log = ThreadLogs::mine()) log->pop(domain);
}

std::string_view log_open_text(std::uintptr_t domain) noexcept {
  if (!host_log_on()) return {};
  const ThreadLog* log = ThreadLogs::mine();
  return log == nullptr ? std::string_view{} : log->open_text(domain);
}

void log_range(std::string_view text, RangeSource source, std::uint8_t cause, TimePoint start, TimePoint end,
               std::uint64_t payload, std::uint32_t thread) noexcept {
  if (!host_log_on()) return;
  ThreadLog* log = ThreadLogs::mine();
  if (log == nullptr) return;
  log->write({.start = start,
              .end = end,
              .value = payload,
              .thread = thread,
              .kind = RecordKind::kRange,
              .range = source,
              .cause = cause},
             text);
}

void log_mark(std::uint64_t number, MarkSource source, std::uint16_t flags) noexcept {
  if (!host_log_on()) return;
  ThreadLog* log = ThreadLogs::mine();
  if (log == nullptr) return;
  const TimePoint at = now();
  log->write({.start = at, .end = at, .value = number, .flags = flags, .kind = RecordKind::kMark, .mark = source}, {});
}

void refresh_after_fork() noexcept {
  if (t_log != nullptr && t_log != kGone) t_log->refresh_thread();
}

std::uint32_t this_thread_id() noexcept {
  ThreadLog* log = ThreadLogs::mine();
  return log != nullptr ? log->thread() : static_cast<std::uint32_t>(syscall(SYS_gettid));
}

}  // namespace gpudiag
