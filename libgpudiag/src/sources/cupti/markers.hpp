// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// NVTX ranges as CUPTI records them, for processes whose NVTX leads to CUPTI's library and not to us:
// two MARKER records, a start and an end with one id, become one range.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "record/clock.hpp"
#include "sources/cupti/cupti_abi.hpp"
#include "sources/host/thread_log.hpp"

namespace gpudiag {

/// Drain thread.
class MarkerPairs {
 public:
  /// Takes a range as if a thread's log had told it.
  using Take = std::function<void(const HostMessage&, std::string_view text)>;

  void add(const CUpti_ActivityMarker2& marker, const ClockMap& clock, const Take& take);
  /// After the last buffer of a round: an end waits one more round for its start.
  void finish_round();
  /// Forgets the ranges that are open: their ends will not come.
  void clear();

  /// Of ranges that are open at a time; a job that leaks them loses the names of later ones.
  static constexpr std::size_t kOpenKept = 16'384;

 private:
  struct Open {
    HostMessage message;
    std::string text;
  };
  std::unordered_map<std::uint32_t, Open> open_;
  /// Ends that came before their starts, which lie in another thread's buffer.
  struct Ended {
    ClockMap::Converted at;
    bool waited = false;
  };
  std::unordered_map<std::uint32_t, Ended> ended_;
};

}  // namespace gpudiag
