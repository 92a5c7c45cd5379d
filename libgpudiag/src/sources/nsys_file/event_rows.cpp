// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/event_rows.hpp"

#include <limits>

#include "sources/recorded/record_order.hpp"

namespace gpudiag::nsys_file {
namespace {

/// Of a number that all bits set say is none.
std::optional<std::int64_t> unless_none(std::optional<std::int64_t> value) {
  if (!value || *value == -1 || *value == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return value;
}

std::uint64_t event_of(std::optional<std::int64_t> value) {
  return static_cast<std::uint64_t>(unless_none(value).value_or(0));
}

/// Rows of waits say device 0 whatever device their context is on (seen in Nsight Systems 2026.2). A
/// stream of an unknown device would be another one.
void place(Builder& builder, Record& record, std::optional<std::int64_t> device_in_row, bool row_knows) {
  const auto device = builder.device_of(record.process, record.context);
  if (device) record.device = *device;
  else if (row_knows) record.device = id_or(device_in_row, kNoDevice);
  if (record.device == kNoDevice) record.stream = kNoStream;
}

void read_overhead_of(Builder& builder, std::string_view table) {
  RowReader rows{builder.database, builder.reading, table,
                 {{"start"}, {"end"}, {"globalTid"}, {"overheadType"}}};
  while (rows.next()) {
    const auto type = rows.integer(3);
    const auto thread = rows.integer(2);
    const auto process = builder.process_of(thread);
    if (!process || !type || !builder.enumerations.is_profilers(*type)) continue;
    Record record;
    record.kind = RecordKind::kOwn;
    if (!builder.set_times(record, rows.integer(0), rows.integer(1))) continue;
    record.process = *process;
    record.thread = GlobalId{*thread}.thread();
    builder.add(record);
  }
}

}  // namespace

void EventRows::read(Builder& builder, CallIndex& calls) {
  RowReader rows{builder.database, builder.reading, "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                 {{"contextId"}, {"streamId"},
                  {"correlationId", "when an event was recorded is not known"},
                  {"globalPid"}, {"eventId"}, {"eventSyncId", "which record of an event a wait waited for is not known"}}};
  while (rows.next()) {
    const auto process = builder.process_of(rows.integer(3));
    const auto correlation = rows.integer(2);
    if (!process || !correlation) {
      builder.count_broken();
      continue;
    }
    Record record;
    record.kind = RecordKind::kEventRecord;
    record.process = *process;
    record.context = id_or(rows.integer(0), ContextId{});
    record.stream = id_or(unless_none(rows.integer(1)), kNoStream);
    record.correlation = CorrelationId{fold_id(*correlation)};
    record.value = event_of(rows.integer(4));
    place(builder, record, std::nullopt, false);
    events_.push_back(record);
    calls.want(record.process, record.correlation);
    if (const auto sync_id = unless_none(rows.integer(5)); sync_id && *sync_id != 0)
      recorders_.insert_or_assign({raw(*process), *sync_id}, raw(record.correlation));
  }
}

std::uint64_t EventRows::recorder_of(ProcessId process, std::int64_t sync_id) const {
  const auto found = recorders_.find({raw(process), sync_id});
  return found == recorders_.end() ? 0 : found->second;
}

void EventRows::add_to(Builder& builder, const CallIndex& calls) const {
  for (Record record : events_) {
    const CallIndex::Call* call = calls.find(record.process, record.correlation);
    if (call == nullptr) {  // without a time it can be put in no order
      builder.count_broken();
      continue;
    }
    record.thread = call->thread;
    record.start = record.end = call->start;
    builder.add(record);
  }
}

void read_syncs(Builder& builder, const EventRows& events) {
  RowReader rows{builder.database, builder.reading, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                 {{"start"}, {"end"}, {"deviceId"}, {"contextId"}, {"streamId"},
                  {"correlationId", "which call waited is not known"}, {"globalPid"},
                  {"syncType"}, {"deprecatedSyncType"}, {"eventId"}, {"eventSyncId"}}};
  while (rows.next()) {
    Record record;
    record.kind = RecordKind::kSync;
    if (!builder.set_times(record, rows.integer(0), rows.integer(1))) continue;
    record.context = id_or(rows.integer(3), ContextId{});
    record.stream = id_or(unless_none(rows.integer(4)), kNoStream);
    record.correlation = id_or(rows.integer(5), kNoCorrelation);
    const auto process = builder.process_of(rows.integer(6));
    record.process = process.value_or(recorded::kDeviceProcess);
    const auto type = rows.integer(7) ? rows.integer(7) : rows.integer(8);
    if (type) record.sync = builder.enumerations.sync(*type);
    record.value = event_of(rows.integer(9));
    if (process)
      record.value2 = events.recorder_of(*process, unless_none(rows.integer(10)).value_or(0));
    place(builder, record, rows.integer(2), !process);
    builder.add(record);
  }
}

void read_overhead(Builder& builder) {
  read_overhead_of(builder, "PROFILER_OVERHEAD");
  read_overhead_of(builder, "CUPTI_ACTIVITY_KIND_OVERHEAD");
}

}  // namespace gpudiag::nsys_file
