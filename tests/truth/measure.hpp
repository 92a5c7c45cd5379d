// SPDX-License-Identifier: Apache-2.0
// Flow: jobs -> program -> machine -> [measure], tracer -> engine under test; judge compares.
// What really happened, read off a History by an independent sweep: iteration windows and the
// device's compute, copy and idle time in them.
#pragma once

#include <cstdint>
#include <vector>

#include "machine.hpp"

namespace gpudiag::truth {

/// One iteration's window on one device (attribution.md, section 2).
struct Window {
  TimePoint start;
  TimePoint end;
  DurationNs compute;  ///< at least one kernel runs
  DurationNs copy;     ///< otherwise, a foreground copy runs
  DurationNs idle;
  DurationNs wall() const { return end - start; }
};

/// Where an iteration ends on the device.
enum class Cut : std::uint8_t {
  kLaunchedLast,  ///< with the operation it launched last, as the ledger has it
  kAllDone,       ///< with all it launched: when its work is really finished, whoever launched it
};

/// Windows of the marked iterations, in order.
std::vector<Window> measure(const Program& program, const History& run, std::uint32_t device,
                            Cut cut);

}  // namespace gpudiag::truth
