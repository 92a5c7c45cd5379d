// SPDX-License-Identifier: Apache-2.0
#include "attribution/intake.hpp"

#include <algorithm>

namespace gpudiag {
namespace {

constexpr std::uint8_t index_of(InvalidReason reason) { return static_cast<std::uint8_t>(reason); }

struct Flaw {
  std::uint16_t flag;
  Defect defect;
  InvalidReason reason;
};

constexpr Flaw kFlaws[] = {
    {record_flag::kUntimed, Defect::kUntimed, InvalidReason::kUntimed},
    {record_flag::kForeignClock, Defect::kForeignClock, InvalidReason::kForeignClock},
    {record_flag::kIncomplete, Defect::kIncomplete, InvalidReason::kIncomplete},
    {record_flag::kNegative, Defect::kNegative, InvalidReason::kNegative}};

bool has_span(const Record& record) {
  return record.is_operation() || record.kind == RecordKind::kApiCall ||
         record.kind == RecordKind::kRange || record.kind == RecordKind::kHostSample;
}

bool is_far(TimePoint t) { return t.ns > kFarthest.ns || t.ns < -kFarthest.ns; }

}  // namespace

Index Intake::thread_of(ThreadId id) {
  const Index thread = ties.thread_of(id);
  if (thread >= labels.size()) labels.resize(thread + 1);
  return thread;
}

// Sources mark defects; what they missed must not turn into a time of fifty years here.
std::uint16_t Intake::defects_of(const Record& record) const {
  const auto marked = static_cast<std::uint16_t>(record.flags & record_flag::kDefective);
  if (marked != 0) return marked;
  if (is_far(record.start) || is_far(record.end)) return record_flag::kForeignClock;
  if (has_span(record) && record.end < record.start) return record_flag::kNegative;
  return 0;
}

void Intake::count_defect(const Record& record, std::uint16_t defects) {
  for (const Flaw& flaw : kFlaws) {
    if ((defects & flaw.flag) == 0) continue;
    ++quality[flaw.defect];
    if (!record.is_operation() && record.kind != RecordKind::kApiCall) return;
    const bool time_known =
        flaw.defect == Defect::kNegative || flaw.defect == Defect::kIncomplete;
    Defective defective;
    defective.at = time_known ? record.start : kTimeMin;
    defective.correlation = record.correlation;
    defective.device = record.is_operation() ? ties.device_of(record.device) : kNone;
    defective.reason = index_of(flaw.reason);
    defective.operation = record.is_operation();
    store.defects.push_back(defective);
    return;
  }
}

void Intake::add_call(const Record& record) {
  Call call;
  call.start = record.start;
  call.end = record.end;
  call.correlation = record.correlation;
  call.name = record.name;
  call.thread = thread_of(record.thread);
  call.flags = record.flags;
  call.api = record.api;
  store.calls.push_back(call);
  first_call = std::min(first_call, record.start);
  if (record.correlation != kNoCorrelation)
    first_correlation = std::min(first_correlation, raw(record.correlation));
  first = std::min(first, record.start);
  last_start = std::max(last_start, record.start);
}

void Intake::add_operation(const Record& record) {
  Operation operation;
  operation.start = record.start;
  operation.end = record.end;
  operation.bytes = record.value;
  operation.correlation = record.correlation;
  operation.name = record.name;
  operation.stream = ties.stream_of(record.device, record.context, record.stream);
  operation.device = ties.stream_device(operation.stream);
  operation.flags = record.flags;
  operation.kind = record.kind;
  operation.copy = record.copy;
  operation.type = classifier_.class_of(record);
  store.operations.push_back(operation);
  first = std::min(first, record.start);
  last_start = std::max(last_start, record.start);
}

void Intake::add_sync(const Record& record) {
  SyncPoint point;
  point.end = record.end;
  point.event = record.value;
  point.correlation = record.correlation;
  point.record_correlation = CorrelationId{static_cast<std::uint32_t>(record.value2)};
  point.kind = record.sync;
  if (record.device != kNoDevice) point.device = ties.device_of(record.device);
  if (record.stream != kNoStream)
    point.stream = ties.stream_of(record.device, record.context, record.stream);
  (record.kind == RecordKind::kSync ? store.syncs : store.event_records).push_back(point);
}

Loop& Intake::loop_of(MarkSource source, Index thread) {
  for (Loop& loop : loops)
    if (loop.source() == source && loop.thread() == thread) return loop;
  loops.emplace_back(source, thread);
  return loops.back();
}

void Intake::add_range(const Record& record) {
  const RangeLabel label = ranges_.label_of(record);
  const Index thread = thread_of(record.thread);
  const LabelledRange range{record.start, record.end, record.name, label};
  switch (label.meaning) {
    case RangeMeaning::kOwner:
    case RangeMeaning::kWeak: labels[thread].add(range); return;
    case RangeMeaning::kIteration:
      loop_of(label.mark, thread)
          .add_range(record.interval(), record.name,
                     number_in(names_.text(record.name)).value_or(kNoIndex));
      return;
    case RangeMeaning::kNothing: break;
  }
  // A silence is only ever named by a range that is longer than the longest dispatch.
  if (record.end - record.start <= options_.dispatch_limit) return;
  LabelledRange context = range;
  if (record.range == RangeSource::kOperator) context.label.sub_cause = SubCause::kDispatch;
  else if (record.range == RangeSource::kPython) context.label.sub_cause = SubCause::kPython;
  labels[thread].add_context(context);
}

void Intake::add_mark(const Record& record) {
  loop_of(record.mark, thread_of(record.thread)).add_mark(record.start, record.name, record.value, record.has(record_flag::kEvaluation));
}

// A live session tells of a long time piece by piece; it is one hole.
void Intake::add_gap(Interval gap) {
  constexpr std::uint8_t kReason = index_of(InvalidReason::kStoodAside);
  for (Hole& hole : holes) {
    if (hole.reason != kReason || hole.time.end != gap.start) continue;
    hole.time.end = gap.end;
    return;
  }
  holes.push_back({gap, kReason, 1});
}

void Intake::add(const Record& record) {
  if (record.kind == RecordKind::kTick) {
    if (!is_far(record.start)) ticked = std::max(ticked, record.start);
    return;
  }
  if (quality.records++ == 0) process = record.process;
  if (const std::uint16_t defects = defects_of(record); defects != 0)
    return count_defect(record, defects);
  switch (record.kind) {
    case RecordKind::kApiCall: return add_call(record);
    case RecordKind::kKernel:
    case RecordKind::kMemcpy:
    case RecordKind::kMemset:
    case RecordKind::kGraph: return add_operation(record);
    case RecordKind::kSync:
    case RecordKind::kEventRecord: return add_sync(record);
    case RecordKind::kRange: return add_range(record);
    case RecordKind::kMark: return add_mark(record);
    case RecordKind::kOwn: return labels[thread_of(record.thread)].add_own(record.interval());
    case RecordKind::kGap: return add_gap(record.interval());
    case RecordKind::kLost:
      // Lost at some time since all had last been delivered.
      quality[Defect::kDropped] += record.value;
      holes.push_back({{ticked == kBeforeAll ? record.start : std::min(ticked, record.start), record.start},
                       index_of(InvalidReason::kDropped),
                       std::max<std::uint64_t>(1, record.value)});
      return;
    case RecordKind::kHostSample: return samples.add(record);
    case RecordKind::kTick: return;
  }
}

}  // namespace gpudiag
