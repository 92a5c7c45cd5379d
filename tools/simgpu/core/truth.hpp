// SPDX-License-Identifier: Apache-2.0
//
// SIMGPU_TRUTH: what really happened, one JSON object a line, written straight from the engine.
// It shares no code with the simulated CUPTI, so that a test can hold one against the other. The
// format is in tools/simgpu/README.md. All times are CLOCK_MONOTONIC, faults of clocks excluded.
#pragma once

#include <cstdint>
#include <string_view>

namespace simgpu {

struct Operation;
class Fault;

// True once start_truth() found SIMGPU_TRUTH and could open the file.
extern bool g_truth_enabled;
inline bool truth_enabled() noexcept { return g_truth_enabled; }

// Opens the file, if one is asked for; what is written before is lost. Whoever comes first calls it,
// before anything is queued. [any thread]
void start_truth();

void truth_operation(const Operation& operation);
// Still queued or running when the process ends.
void truth_unfinished(const Operation& operation);
// The calling thread's API call was blocked on `for_operation` (0: on nothing in particular).
void truth_wait(const char* reason, std::int64_t start_ns, std::int64_t end_ns,
                std::uint64_t for_operation);
// It would have waited for `for_operation`, which had ended already.
void truth_pass(const char* reason, std::int64_t time_ns, std::uint64_t for_operation);
// The calling thread's API call, with `device` current. Not for calls that need no device.
void truth_call(std::uint32_t device, int result, std::int64_t start_ns, std::int64_t end_ns);
// The calling thread was in a range of the program's, and lost the processor of its own accord
// (because it waited for something) `blocked` times in it.
void truth_range(std::string_view name, std::int64_t start_ns, std::int64_t end_ns, long blocked);
// Host time that was put into an API call on purpose.
void truth_delay(const char* cause, std::int64_t start_ns, std::int64_t end_ns);
// A fault struck the running API call, or the operation with this id.
void truth_fault(const Fault& fault, std::uint64_t operation_id);

// Writes out what is buffered. [any thread]
void flush_truth();
// At exit: writes out what is buffered and from then on each line at once.
void finish_truth();
// In a forked child: the parent writes, the child does not.
void abandon_truth();

}  // namespace simgpu
