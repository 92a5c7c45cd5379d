// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// One look at a thread of this process, or at a child process: what the kernel has counted of it and
// what it is held up in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "record/record.hpp"
#include "sources/host/blocked_call.hpp"

namespace gpudiag {

/// Totals since the thread began. What could not be read is none.
struct ThreadCounts {
  std::optional<DurationNs> running;
  std::optional<DurationNs> queued;      ///< ready, without a processor; counted when it gets one
  std::optional<std::uint64_t> arrivals; ///< how often it got a processor

  bool operator==(const ThreadCounts&) const = default;
};

struct ThreadLook {
  TimePoint at;
  ThreadCounts counts;
  BlockedCall held;
  bool alive = false;  ///< false: it is gone
};

/// Of `/proc/…/schedstat`.
ThreadCounts counts_of_schedstat(std::string_view text);
/// Of `/proc/…/stat`: what its state says alone, where the call cannot be seen.
std::optional<BlockedCall> state_of_stat(std::string_view text);
/// Clock ticks from the machine's start to the process's, of `/proc/…/stat`.
std::optional<std::uint64_t> birth_of_stat(std::string_view text);

/// The record between two looks at the same thread, its name left to the caller.
Record sample_between(const ThreadLook& before, const ThreadLook& after, ThreadId thread);

/// Some 10 us: two or three files and a clock. `proc` is "/proc" but in tests.
class ThreadLooker {
 public:
  explicit ThreadLooker(std::string proc = "/proc") : proc_{std::move(proc)} {}

  ThreadLook look_at_thread(std::uint32_t thread, const ProcessView& own) const;
  ThreadLook look_at_child(std::uint32_t pid, const ProcessView& view) const;

 private:
  ThreadLook look(const std::string& folder, const ProcessView& view) const;

  std::string proc_;
};

}  // namespace gpudiag
