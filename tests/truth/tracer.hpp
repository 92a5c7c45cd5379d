// SPDX-License-Identifier: Apache-2.0
// Flow: jobs -> program -> machine -> [tracer] -> engine under test; judge compares.
// What a tracer would have recorded of a History.
#pragma once

#include <vector>

#include "machine.hpp"
#include "record/names.hpp"
#include "record/record.hpp"

namespace gpudiag::truth {

struct TracerOptions {
  bool sync_records = true;   ///< what each wait waited for; older traces lack them
  bool event_records = true;  ///< which event was recorded where; older traces lack them
  bool driver_calls = false;  ///< the driver call inside each runtime call, too
  bool operator_ranges = true;
  bool profiler_steps = false;  ///< iterations as ranges `ProfilerStep#n` instead of marks
  bool ticks = true;            ///< delivered as a live source delivers: by end, with ticks between
};

/// Records in the order of their ends, as buffers deliver them.
std::vector<Record> trace(const Program& program, const History& run, const TracerOptions& options,
                          NameTable& names);

}  // namespace gpudiag::truth
