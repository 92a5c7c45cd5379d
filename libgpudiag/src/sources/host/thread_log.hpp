// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// What the job's threads tell us themselves (ranges, marks, API calls seen by callbacks): each thread
// writes to a log of its own and the drain thread reads them all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "attribution/cause.hpp"
#include "record/record.hpp"
#include "record/ring.hpp"

namespace gpudiag {

/// Longer names are cut.
inline constexpr std::size_t kRangeTextKept = 200;

/// One message of a log; `text_bytes` of text follow it in the ring.
struct HostMessage {
  TimePoint start;
  TimePoint end;
  std::uint64_t value = 0;
  std::uint32_t thread = 0;       ///< system thread id
  std::uint32_t correlation = 0;  ///< kApiCall
  std::uint32_t callback = 0;     ///< kApiCall: CUPTI's number of the function
  std::uint16_t flags = 0;
  std::uint16_t text_bytes = 0;
  RecordKind kind = RecordKind::kRange;
  RangeSource range = RangeSource::kUser;
  MarkSource mark = MarkSource::kStep;
  std::uint8_t cause = 0;         ///< as Record::cause
  enum class Content : std::uint8_t { kRecord, kNcclCall };
  Content content = Content::kRecord;  ///< kNcclCall: the text is an NcclCall (sources/nccl/nccl_calls.hpp)
};

/// What the kernel has counted of a thread.
struct ProcessorUse {
  std::int64_t blocked = 0;  ///< how often it gave the processor away of its own accord
  DurationNs running;        ///< time on a processor
};

/// A log belongs to one thread at a time. All functions but drain() are [hot] and for
/// that thread only.
class ThreadLog {
 public:
  ThreadLog(std::byte* ring_storage, std::uint32_t ring_bytes) noexcept;

  /// Ranges nest per `domain`, a number that keeps one user's pops from another's pushes.
  void push(std::uintptr_t domain, std::string_view text, RangeSource source, std::uint8_t cause,
            std::uint64_t payload) noexcept;
  void pop(std::uintptr_t domain) noexcept;
  /// The text of the innermost range of `domain` that is open, until it is popped; empty: none is.
  std::string_view open_text(std::uintptr_t domain) const noexcept;
  void write(HostMessage message, std::string_view text) noexcept;
  std::uint32_t open_ranges() const noexcept { return depth_ + too_deep_; }

  template <typename Take>
  void drain(Take&& take) {
    ring_.drain(take);
  }
  bool empty() const noexcept { return ring_.empty(); }
  /// Messages that did not fit; the drain thread takes the count. [any thread]
  std::uint64_t take_lost() noexcept { return lost_.exchange(0, std::memory_order_relaxed); }

  std::uint32_t thread() const noexcept { return thread_; }
  /// The thread is another one now: the child of a fork.
  void refresh_thread() noexcept;

 private:
  friend class ThreadLogs;
  // The innermost open range that is not an operator's, for others to read: a seqlock, whose words are
  // atomic so that reading beside the writer is no race.
  struct Shown {
    static constexpr std::size_t kWords = 6;
    std::atomic<std::uint32_t> version{0};
    std::atomic<std::uint32_t> thread{0};
    std::atomic<std::uint32_t> size{0};  ///< of the text; 0: none is open
    std::atomic<std::int64_t> start{0};
    std::atomic<std::uint64_t> words[kWords]{};
  };
  void show() noexcept;
  enum class State : std::uint32_t { kFree, kUsed };

  struct OpenRange {
    TimePoint start;
    std::uint64_t payload;
    std::uintptr_t domain;
    ProcessorUse before;  ///< of watched waits
    bool watched;
    RangeSource source;
    std::uint8_t cause;
    std::uint8_t text_bytes;
    char text[kRangeTextKept];
  };
  static constexpr std::uint32_t kDepthKept = 64;

  void adopt() noexcept;
  void count_own(TimePoint entered) noexcept;

  SpscRing ring_;
  std::uint32_t thread_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t too_deep_ = 0;   // pushes beyond kDepthKept that have not been popped
  std::uint32_t calls_ = 0;
  DurationNs own_;               // of our own time, not yet reported
  std::atomic<std::uint64_t> lost_{0};                // relaxed: a counter, orders nothing
  std::atomic<State> state_{State::kFree};            // hands the log from thread to thread
  std::array<OpenRange, kDepthKept> open_;
  Shown shown_;
};

/// A range that a thread is inside of; longer texts are cut.
struct OpenNow {
  std::string text;
  TimePoint start;
};

/// All logs of the process. Storage comes from mmap, once, and is kept; so a log may be written to
/// whatever allocator the job uses and whatever else of the process is gone already.
class ThreadLogs {
 public:
  /// The calling thread's log. The first call of a thread finds one for it (a system call or two);
  /// the rest are [hot]. Null where there are too many threads, or late in a thread's exit.
  static ThreadLog* mine() noexcept;

  /// Calls `take(const HostMessage&, std::string_view text)` for what the logs hold. Drain thread.
  template <typename Take>
  static void drain(Take&& take) {
    const std::size_t made = made_logs();
    for (std::size_t i = 0; i < made; ++i) {
      ThreadLog* log = log_at(i);
      if (log == nullptr) continue;
      log->drain([&](std::span<const std::byte> bytes) {
        HostMessage message;
        std::memcpy(&message, bytes.data(), sizeof message);
        take(message, std::string_view{reinterpret_cast<const char*>(bytes.data()) + sizeof message,
                                       message.text_bytes});
      });
    }
  }

  /// The innermost range that `thread` is in now, operators' left aside. Drain thread.
  static std::optional<OpenNow> open_now(std::uint32_t thread);

  /// Messages lost since the last call, over all logs.
  static std::uint64_t take_lost() noexcept;

 private:
  static std::size_t made_logs() noexcept;
  static ThreadLog* log_at(std::size_t index) noexcept;
  static ThreadLog* free_log() noexcept;
  static ThreadLog* new_log() noexcept;
};

/// From now on pushed ranges of this name get record_flag::kNotBlocked where the thread did not block
/// inside. A system call at each end, for waits only: they cost far more. At most kWatchedWaits
/// names, further ones are not watched. Drain thread.
void watch_wait(std::string_view name) noexcept;
inline constexpr std::uint32_t kWatchedWaits = 8;

/// Gates the writers: off, a push costs one load. [any thread]
bool host_log_on() noexcept;
void set_host_log(bool on) noexcept;

// What the public API and NVTX call; each a few nanoseconds where host_log_on() is false. [hot]
void log_push(std::uintptr_t domain, std::string_view text, RangeSource source, std::uint8_t cause,
              std::uint64_t payload) noexcept;
void log_pop(std::uintptr_t domain) noexcept;
/// The calling thread's innermost open range of `domain`, until it is popped.
std::string_view log_open_text(std::uintptr_t domain) noexcept;
/// A range known as a whole, or an instant.
void log_range(std::string_view text, RangeSource source, std::uint8_t cause, TimePoint start, TimePoint end,
               std::uint64_t payload, std::uint32_t thread = 0) noexcept;
/// `flags` as Record::flags.
void log_mark(std::uint64_t number, MarkSource source, std::uint16_t flags = 0) noexcept;

/// gettid() of the calling thread, remembered.
std::uint32_t this_thread_id() noexcept;
/// For the child of a fork, on its only thread.
void refresh_after_fork() noexcept;

}  // namespace gpudiag
