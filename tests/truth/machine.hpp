// SPDX-License-Identifier: Apache-2.0
// Flow: jobs -> program -> [machine] -> tracer -> engine under test; judge compares.
// A discrete-event model of a host with CUDA devices: runs a Program forwards and says what
// happened when. Independent of the engine; its rules are CUDA's:
//   - an operation starts when its call has ended and the latency has passed, its stream's last
//     operation is done, and the events its stream was told to wait for are done;
//   - copies in one direction share one copy engine a device; kernels of several streams overlap;
//   - a wait for an event means the event's latest record at the time of the call;
//   - a launch blocks while `queue_depth` operations of its stream are outstanding;
//   - cudaMalloc and cudaFree wait for all work of the device.
#pragma once

#include <vector>

#include "program.hpp"

namespace gpudiag::truth {

/// A CUDA call. `correlation` is its index in History::calls plus one.
struct Call {
  std::uint32_t thread = 0;
  const Action* action = nullptr;
  TimePoint start;
  TimePoint end;          ///< kTimeMin: still under way when the program ended
  TimePoint waited_from;  ///< where the blocked part at its end began; `end` where there is none
  std::uint32_t event_call =
      0;  ///< of waits on an event: correlation of the record it means; 0: none
};

struct Operation {
  std::uint32_t correlation = 0;
  std::uint32_t stream = 0;
  TimePoint start;
  TimePoint end;
};

struct RangeSpan {
  std::uint32_t thread = 0;
  const Action* action = nullptr;  ///< that entered it
  TimePoint start;
  TimePoint end;
};

struct Marked {
  std::uint32_t thread = 0;
  TimePoint at;
};

/// A semaphore was taken.
struct Taken {
  std::uint32_t semaphore = 0;
  TimePoint asked;
  bool waited = false;
};

struct History {
  std::vector<Call> calls;            ///< in the order in which they began
  std::vector<Operation> operations;  ///< in the order in which they were queued
  std::vector<RangeSpan> ranges;
  std::vector<Taken> taken;
  std::vector<Marked> marks;  ///< iteration i ends at marks[i]
};

/// Runs until every script that is no daemon has ended. `program` must outlive the result.
/// Throws std::logic_error when the scripts wait for each other for ever.
History execute(const Program& program);

}  // namespace gpudiag::truth
