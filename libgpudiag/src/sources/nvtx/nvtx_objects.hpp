// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// What NVTX hands out handles for: domains, registered strings, ranges that end on another thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "record/time.hpp"
#include "sources/host/thread_log.hpp"

namespace gpudiag {

/// A string of ours that lives for ever, or one shared stand-in when there are too many. Handles of
/// domains and registered strings point to one. [any thread]; takes a lock, like the call it serves.
struct NvtxText {
  std::uint32_t size = 0;
  char text[1];

  std::string_view view() const { return {text, size}; }
};
const NvtxText* keep_text(std::string_view text) noexcept;

/// Ranges of nvtxRangeStart, which may end on any thread. A fixed table: a job that leaks ranges
/// loses the newest and nothing else. [hot] [any thread]
class OpenRanges {
 public:
  /// An id for end(); 0 where the table is full.
  std::uint64_t start(std::string_view text, std::uint64_t payload) noexcept;
  /// Logs the range; nothing for an id that is not open.
  void end(std::uint64_t id) noexcept;

 private:
  static constexpr std::uint64_t kSlots = 512;
  enum class State : std::uint32_t { kFree, kBusy, kOpen };
  struct Slot {
    std::atomic<State> state{State::kFree};  // acquire and release: hands the slot on
    std::atomic<std::uint32_t> generation{0};
    std::uint32_t thread = 0;
    std::uint16_t text_bytes = 0;
    TimePoint start;
    std::uint64_t payload = 0;
    char text[kRangeTextKept] = {};
  };
  std::atomic<std::uint64_t> hint_{0};  // relaxed: where to look first
  std::array<Slot, kSlots> slots_;
};

}  // namespace gpudiag
