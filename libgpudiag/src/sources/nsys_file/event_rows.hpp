// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// Waits, the events they wait for, and time that the profiler took for itself.
#pragma once

#include "sources/nsys_file/builder.hpp"
#include "sources/nsys_file/call_index.hpp"

namespace gpudiag::nsys_file {

/// CUDA events as they were recorded on streams. Their rows have no time of the host: that comes from
/// their calls, which are known when all tables are read.
class EventRows {
 public:
  void read(Builder& builder, CallIndex& calls);
  /// Correlation of the call that recorded the event, by the number that its waits bear; 0 of others.
  std::uint64_t recorder_of(ProcessId process, std::int64_t sync_id) const;
  /// Adds the records of those whose call is in the file, and counts the others.
  void add_to(Builder& builder, const CallIndex& calls) const;

 private:
  std::vector<Record> events_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint64_t> recorders_;
};

/// After the operations, which tell which device a context is on: the rows themselves do not know.
void read_syncs(Builder& builder, const EventRows& events);

void read_overhead(Builder& builder);

}  // namespace gpudiag::nsys_file
