// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Settings of CUPTI that hold for all of a process. We set them while we record and put them back when
// another profiler's turn comes, so that its records are what they are without us.
#pragma once

#include <cstdint>
#include <optional>

#include "sources/cupti/cupti_abi.hpp"

namespace gpudiag {

/// Drain thread. A function that this CUPTI lacks, or that fails, leaves its setting alone.
class BorrowedSettings {
 public:
  /// Thread ids of the system, so that they agree with those of ranges; one buffer a thread or one for
  /// all as the process had it when we came first (PyTorch's profiler leaves it changed).
  void take(const CuptiTable& cupti);
  /// As they were found by take().
  void give_back(const CuptiTable& cupti);

 private:
  std::optional<CUpti_ActivityThreadIdType> thread_ids_;
  std::optional<std::uint8_t> ours_per_thread_;
  std::optional<std::uint8_t> found_per_thread_;
};

}  // namespace gpudiag
