// SPDX-License-Identifier: Apache-2.0
#include "sweep.hpp"

#include <map>
#include <string_view>

namespace gpudiag::golden {
namespace {

enum Busy { kComputes, kCommunicates, kCopies };

Busy busy_with(const Record& record, const NameTable& names, Reading reading) {
  const bool contract = reading == Reading::kContract;
  if (record.kind == RecordKind::kMemset) return contract ? kCopies : kComputes;
  if (record.kind == RecordKind::kMemcpy) {
    return record.copy == CopyKind::kPeer ? kCommunicates : kCopies;
  }
  // The collectives that occur in the traces: NCCL's, and torch's own over symmetric memory.
  const std::string_view name = names.text(record.name);
  const bool symmetric_memory = contract && name.find("multimem_all_reduce") != name.npos;
  return name.starts_with("nccl") || symmetric_memory ? kCommunicates : kComputes;
}

}  // namespace

SweptTimes sweep(const std::vector<Record>& records, DeviceId device, const NameTable& names,
                 Reading reading) {
  struct Change {
    int running[3] = {0, 0, 0};
  };
  std::map<std::int64_t, Change> changes;  // by time
  for (const Record& record : records) {
    if (!record.is_operation() || record.device != device) continue;
    const Busy busy = busy_with(record, names, reading);
    ++changes[record.start.ns].running[busy];
    --changes[record.end.ns].running[busy];
  }
  SweptTimes swept;
  int running[3] = {0, 0, 0};
  std::int64_t since = 0;
  bool first = true;
  for (const auto& [now, change] : changes) {
    const std::int64_t length = first ? 0 : now - since;
    first = false;
    swept.wall += length;
    if (running[kCommunicates] > 0) swept.communication_in_all += length;
    if (running[kCopies] > 0) swept.copy_in_all += length;
    if (running[kComputes] > 0)
      swept.compute += length;
    else if (running[kCommunicates] > 0)
      swept.communication += length;
    else if (running[kCopies] > 0)
      swept.copy += length;
    else
      swept.idle += length;
    for (int i = 0; i < 3; ++i) running[i] += change.running[i];
    since = now;
  }
  return swept;
}

}  // namespace gpudiag::golden
