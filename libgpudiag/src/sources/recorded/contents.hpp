// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources] -> record -> timeline -> attribution -> report.
// What a reader fills, before it is a RecordedTrace.
#pragma once

#include <cstdint>
#include <vector>

#include "sources/recorded/record_order.hpp"
#include "sources/recorded/record_store.hpp"
#include "sources/recorded/recorded_trace.hpp"

namespace gpudiag::recorded {

struct Contents {
  NameTable names;
  RecordStore records;
  std::vector<Delivery> order;
  Interval session;
  RecordedInfo info;
  std::vector<RecordedProcess> processes;
  Quality quality;

  /// Puts the records, whose times are the file's, on a clock that begins with the earliest of them,
  /// and into the order of their ends. `unix_ns`: the file's time 0 in ns since 1970.
  void put_in_order(std::int64_t unix_ns);
};

}  // namespace gpudiag::recorded
