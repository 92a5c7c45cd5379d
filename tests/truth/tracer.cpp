// SPDX-License-Identifier: Apache-2.0
#include "tracer.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace gpudiag::truth {
namespace {

constexpr std::uint32_t kFirstThread = 4'000;
constexpr std::uint32_t kFirstStream = 7;
constexpr std::uint32_t kFirstEvent = 100;
constexpr std::uint32_t kGraph = 3;
constexpr std::uint32_t kFirstDriverCorrelation = 1u << 30;
constexpr DurationNs kTickEvery = milliseconds(200);

struct CallShape {
  ApiClass api;
  std::string_view name;
};

CallShape shape_of(const Action& action) {
  switch (action.what) {
    case Do::kLaunch:
      return {ApiClass::kLaunch, "cudaLaunchKernel"};
    case Do::kGraphLaunch:
      return {ApiClass::kGraphLaunch, "cudaGraphLaunch"};
    case Do::kCopy:
      return action.blocks && !action.pageable
                 ? CallShape{ApiClass::kMemcpy, "cudaMemcpy"}
                 : CallShape{ApiClass::kMemcpyAsync, "cudaMemcpyAsync"};
    case Do::kRecord:
      return {ApiClass::kEventRecord, "cudaEventRecord"};
    case Do::kStreamWait:
      return {ApiClass::kStreamWait, "cudaStreamWaitEvent"};
    case Do::kStreamSync:
      return {ApiClass::kStreamSync, "cudaStreamSynchronize"};
    case Do::kDeviceSync:
      return {ApiClass::kDeviceSync, "cudaDeviceSynchronize"};
    case Do::kEventSync:
      return {ApiClass::kEventSync, "cudaEventSynchronize"};
    case Do::kQuery:
      return {ApiClass::kQuery, "cudaEventQuery"};
    case Do::kMalloc:
      return {ApiClass::kMalloc, "cudaMalloc"};
    case Do::kHostMalloc:
      return {ApiClass::kHostMalloc, "cudaHostAlloc"};
    case Do::kFree:
      return {ApiClass::kFree, "cudaFree"};
    default:
      return {ApiClass::kOther, "cudaGetDevice"};
  }
}

class Tracer {
 public:
  Tracer(const Program& program, const History& run, const TracerOptions& options, NameTable& names)
      : program_(program), run_(run), options_(options), names_(names) {}

  std::vector<Record> records() {
    for (std::size_t i = 0; i < run_.calls.size(); ++i)
      add_call(static_cast<std::uint32_t>(i + 1), run_.calls[i]);
    for (const Operation& operation : run_.operations) add_operation(operation);
    for (const RangeSpan& range : run_.ranges) add_range(range);
    for (std::size_t i = 0; i < run_.marks.size(); ++i) add_mark(i, run_.marks[i]);
    std::stable_sort(out_.begin(), out_.end(),
                     [](const Record& a, const Record& b) { return a.end < b.end; });
    if (options_.ticks) add_ticks();
    return std::move(out_);
  }

 private:
  Record base(RecordKind kind, TimePoint start, TimePoint end) const {
    Record record;
    record.kind = kind;
    record.start = start;
    record.end = end;
    return record;
  }

  ThreadId thread(std::uint32_t index) const { return ThreadId{kFirstThread + index}; }

  void place(Record& record, std::uint32_t stream) const {
    const std::uint32_t device = program_.streams[stream].device;
    record.device = DeviceId{device};
    record.context = ContextId{device + 1};
    record.stream = StreamId{kFirstStream + stream};
  }

  void add_call(std::uint32_t correlation, const Call& call) {
    // A daemon's last call may still be under way when the program ends.
    if (call.end < call.start || !program_.scripts[call.thread].traced) return;
    const CallShape shape = shape_of(*call.action);
    Record record = base(RecordKind::kApiCall, call.start, call.end);
    record.api = shape.api;
    record.name = names_.intern(shape.name);
    record.thread = thread(call.thread);
    record.correlation = CorrelationId{correlation};
    if (call.action->failed) record.flags |= record_flag::kFailed;
    if (options_.driver_calls) add_driver_call(record);
    out_.push_back(record);
    add_wait(correlation, call);
  }

  void add_driver_call(Record record) {
    const DurationNs length = record.end - record.start;
    record.start += DurationNs{length.ns / 8};
    record.end -= DurationNs{length.ns / 8};
    record.correlation = CorrelationId{kFirstDriverCorrelation + raw(record.correlation)};
    record.flags |= record_flag::kDriverApi;
    out_.push_back(record);
  }

  void add_wait(std::uint32_t correlation, const Call& call) {
    const Action& action = *call.action;
    Record record = base(RecordKind::kSync, call.start, call.end);
    record.correlation = CorrelationId{correlation};
    record.thread = thread(call.thread);
    switch (action.what) {
      case Do::kRecord:
        if (!options_.event_records) return;
        record.kind = RecordKind::kEventRecord;
        place(record, action.stream);
        record.value = kFirstEvent + action.event;
        break;
      case Do::kStreamWait:
        record.sync = SyncKind::kStreamWaitsEvent;
        place(record, action.stream);
        record.value = kFirstEvent + action.event;
        record.value2 = call.event_call;
        break;
      case Do::kEventSync:
        record.sync = SyncKind::kEvent;
        place(record, action.stream);
        record.stream = kNoStream;
        record.value = kFirstEvent + action.event;
        record.value2 = call.event_call;
        break;
      case Do::kStreamSync:
        record.sync = SyncKind::kStream;
        place(record, action.stream);
        break;
      case Do::kDeviceSync:
        record.sync = SyncKind::kContext;
        record.device = DeviceId{action.device};
        record.context = ContextId{action.device + 1};
        break;
      default:
        return;
    }
    if (record.kind == RecordKind::kSync && !options_.sync_records) return;
    out_.push_back(record);
  }

  void add_operation(const Operation& operation) {
    const Action& action = *run_.calls[operation.correlation - 1].action;
    Record record = base(RecordKind::kKernel, operation.start, operation.end);
    place(record, operation.stream);
    record.correlation = CorrelationId{operation.correlation};
    record.name = names_.intern("step_kernel");
    if (action.what == Do::kGraphLaunch) record.graph = GraphId{kGraph};
    if (action.what == Do::kCopy) {
      record.kind = RecordKind::kMemcpy;
      record.name = kNoName;
      record.copy = action.copy;
      record.value = action.count;
      if (action.pageable) record.flags |= record_flag::kPageable;
      if (!action.blocks || action.pageable) record.flags |= record_flag::kAsync;
    }
    out_.push_back(record);
  }

  void add_range(const RangeSpan& range) {
    if (!program_.scripts[range.thread].traced) return;
    if (range.action->range == RangeSource::kOperator && !options_.operator_ranges) return;
    Record record = base(RecordKind::kRange, range.start, range.end);
    record.range = range.action->range;
    if (range.action->cause != Cause::kUnknown) {
      record.cause = static_cast<std::uint8_t>(static_cast<int>(range.action->cause) + 1);
      record.sub_cause = static_cast<std::uint8_t>(static_cast<int>(range.action->sub_cause) + 1);
    }
    record.thread = thread(range.thread);
    record.name = names_.intern(program_.names[range.action->name]);
    out_.push_back(record);
  }

  void add_mark(std::size_t index, const Marked& mark) {
    if (options_.profiler_steps) return add_step(index, mark);
    Record record = base(RecordKind::kMark, mark.at, mark.at);
    record.mark = MarkSource::kStep;
    record.thread = thread(mark.thread);
    record.value = index;
    out_.push_back(record);
  }

  void add_step(std::size_t index, const Marked& mark) {
    const TimePoint start = index == 0 ? TimePoint{} : run_.marks[index - 1].at + DurationNs{1};
    Record record = base(RecordKind::kRange, start, mark.at);
    record.range = RangeSource::kAnnotation;
    record.thread = thread(mark.thread);
    record.name = names_.intern("ProfilerStep#" + std::to_string(index));
    out_.push_back(record);
  }

  void add_ticks() {
    if (out_.empty()) return;
    std::vector<Record> ticked;
    TimePoint due = out_.front().end + kTickEvery;
    for (const Record& record : out_) {
      for (; record.end >= due; due += kTickEvery)
        ticked.push_back(base(RecordKind::kTick, due, due));
      ticked.push_back(record);
    }
    out_ = std::move(ticked);
  }

  const Program& program_;
  const History& run_;
  const TracerOptions& options_;
  NameTable& names_;
  std::vector<Record> out_;
};

}  // namespace

std::vector<Record> trace(const Program& program, const History& run, const TracerOptions& options,
                          NameTable& names) {
  return Tracer(program, run, options, names).records();
}

}  // namespace gpudiag::truth
