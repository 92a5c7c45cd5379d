// SPDX-License-Identifier: Apache-2.0
//
// The time base of the simulation is the real CLOCK_MONOTONIC: a blocking call blocks for real.
#pragma once

#include <cstdint>

namespace simgpu {

// Returns once CLOCK_MONOTONIC has reached `deadline_ns`. Sleeps for the bulk and spins for the
// last tens of microseconds, because a sleeping thread wakes about 50 µs late (timer slack).
void sleep_until_ns(std::int64_t deadline_ns) noexcept;

// Burns host time until `deadline_ns`, as a busy driver call would.
void spin_until_ns(std::int64_t deadline_ns) noexcept;

}  // namespace simgpu
