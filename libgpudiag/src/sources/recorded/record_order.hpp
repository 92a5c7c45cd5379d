// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources] -> record -> timeline -> attribution -> report.
// What can be known only when all of a file is read: whose an operation is, which times can be
// believed, where time begins, and in which order a live source would have delivered the records.
#pragma once

#include <cstdint>
#include <vector>

#include "record/time.hpp"
#include "sources/recorded/record_store.hpp"
#include "sources/recorded/recorded_trace.hpp"

namespace gpudiag::recorded {

/// Marks what ran on a device: which process asked for it is not known before the end of the file.
inline constexpr ProcessId kDeviceProcess{0xffffffffu};

/// Where in time a record is delivered, and its place in the store.
struct Delivery {
  TimePoint at;
  std::uint32_t index;
};

/// Counts what each process has (`pids` by ProcessId), gives operations and sync records of
/// kDeviceProcess their process, and puts the main process first, the others by pid.
std::vector<RecordedProcess> assign_processes(RecordStore& records,
                                              const std::vector<std::int64_t>& pids);

/// What the trace's clock can have shown: from the first to the last host record, give or take as
/// much again. A record outside is of another clock.
Interval find_session(const RecordStore& records);

/// The earliest start that can be believed.
TimePoint find_origin(const RecordStore& records, Interval session);

/// Times counted from `origin`, within what 64 bits hold.
Interval relative_to(Interval interval, TimePoint origin);

/// Makes all times relative to `origin`, puts untimed records where their launch ended, and orders
/// them all by their end.
std::vector<Delivery> order_records(RecordStore& records, TimePoint origin, Interval session);

}  // namespace gpudiag::recorded
