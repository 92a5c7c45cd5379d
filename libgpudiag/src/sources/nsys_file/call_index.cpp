// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/call_index.hpp"

namespace gpudiag::nsys_file {

void CallIndex::want(ProcessId process, CorrelationId correlation) {
  if (correlation != kNoCorrelation) calls_.try_emplace(key(process, correlation));
}

void CallIndex::find_in(const recorded::RecordStore& records) {
  if (calls_.empty()) return;
  records.for_each([&](const Record& record) {
    if (record.kind != RecordKind::kApiCall) return;
    const auto found = calls_.find(key(record.process, record.correlation));
    if (found == calls_.end()) return;
    Call& call = found->second;
    if (call.known && !call.driver) return;
    call = {record.start, record.end, record.thread, true, record.has(record_flag::kDriverApi)};
  });
}

const CallIndex::Call* CallIndex::find(ProcessId process, CorrelationId correlation) const {
  const auto found = calls_.find(key(process, correlation));
  return found == calls_.end() || !found->second.known ? nullptr : &found->second;
}

}  // namespace gpudiag::nsys_file
