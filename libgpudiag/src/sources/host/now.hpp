// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// The session's clock, read. Live sources only; nothing behind the records reads a clock.
#pragma once

#include <time.h>

#include <cstdint>

#include "record/time.hpp"

namespace gpudiag {

/// CLOCK_MONOTONIC, through the vDSO: some 25 ns, no system call. [hot] [any thread]
inline TimePoint now() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return {std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec};
}

}  // namespace gpudiag
