// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/event_records.hpp"

namespace gpudiag::kineto_file {

void add_event_records(recorded::RecordStore& records,
                       const std::map<std::uint32_t, RecordedEvent>& events) {
  if (events.empty()) return;
  const std::size_t before = records.size();
  for (std::size_t i = 0; i < before; ++i) {
    const Record call = records[i];
    if (call.kind != RecordKind::kApiCall || call.api != ApiClass::kEventRecord) continue;
    const auto found = events.find(raw(call.correlation));
    if (found == events.end()) continue;
    Record record;
    record.kind = RecordKind::kEventRecord;
    record.start = record.end = call.end;
    record.process = call.process;
    record.thread = call.thread;
    record.correlation = call.correlation;
    record.device = found->second.device;
    record.stream = found->second.stream;
    record.value = found->second.event;
    records.add(record);
  }
}

}  // namespace gpudiag::kineto_file
