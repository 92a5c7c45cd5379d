// SPDX-License-Identifier: Apache-2.0
#include "training_stream.hpp"

#include <algorithm>
#include <string>

namespace gpudiag::bench {
namespace {

constexpr DurationNs kRound = milliseconds(200);
constexpr DurationNs kLatency = microseconds(4);   // from a launch's return to its start
constexpr DurationNs kSpacing{900};                // between kernels back to back
constexpr std::size_t kKernelNames = 40;
constexpr ThreadId kThread{4711};

Record on_thread(RecordKind kind, TimePoint start, TimePoint end) {
  Record record;
  record.kind = kind;
  record.start = start;
  record.end = end;
  record.thread = kThread;
  return record;
}

template <typename Ready>
void move_ready(std::deque<Record>& from, std::vector<Record>& to, Ready ready) {
  while (!from.empty() && ready(from.front())) {
    to.push_back(from.front());
    from.pop_front();
  }
}

}  // namespace

JobShape gpu_bound() {
  return {};
}

JobShape host_bound() {
  JobShape shape;
  shape.kernel = microseconds(3);
  return shape;
}

TrainingStream::TrainingStream(const JobShape& shape, NameTable& names)
    : shape_{shape},
      launch_{names.intern("cudaLaunchKernel")},
      copy_{names.intern("cudaMemcpyAsync")},
      sync_{names.intern("cudaStreamSynchronize")},
      record_{names.intern("cudaEventRecord")},
      wait_{names.intern("cudaStreamWaitEvent")},
      forward_{names.intern("forward")},
      backward_{names.intern("backward")},
      optimizer_{names.intern("optimizer")} {
  for (std::size_t i = 0; i < kKernelNames; ++i)
    kernels_.push_back(names.intern("void elementwise_kernel<" + std::to_string(i) + ">(float*)"));
}

Record TrainingStream::call(ApiClass api, DurationNs length, NameId name) {
  host_ += shape_.dispatch;
  Record record = on_thread(RecordKind::kApiCall, host_, host_ + length);
  record.api = api;
  record.name = name;
  record.correlation = CorrelationId{++correlation_};
  host_ = record.end;
  return record;
}

void TrainingStream::add_operation(Record operation, DurationNs length) {
  operation.device = DeviceId{0};
  operation.context = ContextId{1};
  TimePoint& free = device_[raw(operation.stream) == 7 ? 0 : 1];
  operation.start = std::max(free + kSpacing, host_ + kLatency);
  operation.end = free = operation.start + length;
  operations_.push_back(operation);
}

void TrainingStream::add_launch(std::uint32_t number) {
  const Record launch = call(ApiClass::kLaunch, shape_.call, launch_);
  host_records_.push_back(launch);
  Record kernel;
  kernel.kind = RecordKind::kKernel;
  kernel.stream = StreamId{7};
  kernel.correlation = launch.correlation;
  kernel.name = kernels_[number % kKernelNames];
  noise_ = noise_ * 1664525u + 1013904223u;
  const std::int64_t half = shape_.kernel.ns / 2;
  add_operation(kernel, {half + static_cast<std::int64_t>(noise_ >> 8) % std::max<std::int64_t>(1, shape_.kernel.ns)});
}

// The compute stream's event is waited for by the other stream, whose copy does not come back.
void TrainingStream::add_events() {
  Record recorded = call(ApiClass::kEventRecord, microseconds(1), record_);
  host_records_.push_back(recorded);
  recorded.kind = RecordKind::kEventRecord;
  recorded.start = recorded.end;
  recorded.value = 1 + iteration_ % 64;
  recorded.stream = StreamId{7};
  recorded.device = DeviceId{0};
  recorded.context = ContextId{1};
  host_records_.push_back(recorded);
  Record wait = call(ApiClass::kStreamWait, microseconds(1), wait_);
  host_records_.push_back(wait);
  wait.kind = RecordKind::kSync;
  wait.sync = SyncKind::kStreamWaitsEvent;
  wait.value = recorded.value;
  wait.stream = StreamId{8};
  wait.device = DeviceId{0};
  wait.context = ContextId{1};
  host_records_.push_back(wait);
  const Record launch = call(ApiClass::kMemcpyAsync, shape_.call, copy_);
  host_records_.push_back(launch);
  Record copy;
  copy.kind = RecordKind::kMemcpy;
  copy.copy = CopyKind::kDeviceToDevice;
  copy.value = 1 << 20;
  copy.stream = StreamId{8};
  copy.correlation = launch.correlation;
  add_operation(copy, microseconds(2));
}

void TrainingStream::add_loss() {
  const Record launch = call(ApiClass::kMemcpyAsync, shape_.call, copy_);
  host_records_.push_back(launch);
  Record copy;
  copy.kind = RecordKind::kMemcpy;
  copy.copy = CopyKind::kDeviceToHost;
  copy.value = 4;
  copy.stream = StreamId{7};
  copy.correlation = launch.correlation;
  add_operation(copy, microseconds(2));
  Record wait = call(ApiClass::kStreamSync, microseconds(2), sync_);
  host_ = wait.end = std::max(wait.end, device_[0] + kLatency);
  host_records_.push_back(wait);
  wait.kind = RecordKind::kSync;
  wait.sync = SyncKind::kStream;
  wait.device = DeviceId{0};
  wait.context = ContextId{1};
  wait.stream = StreamId{7};
  host_records_.push_back(wait);
}

void TrainingStream::add_range(TimePoint start, NameId name) {
  Record range = on_thread(RecordKind::kRange, start, host_);
  range.range = RangeSource::kNvtx;
  range.name = name;
  host_records_.push_back(range);
}

void TrainingStream::add_iteration() {
  const NameId phases[] = {forward_, backward_, optimizer_};
  for (std::uint32_t number = 0, phase = 0; phase < 3; ++phase) {
    const TimePoint start = host_;
    for (; number < shape_.launches * (phase + 1) / 3; ++number) {
      add_launch(number);
      if (shape_.events && number % 16 == 0) add_events();
    }
    add_range(start, phases[phase]);
  }
  add_loss();
  Record mark = on_thread(RecordKind::kMark, host_, host_);
  mark.value = iteration_++;
  host_records_.push_back(mark);
}

const std::vector<Record>& TrainingStream::next_round() {
  round_end_ += kRound;
  while (host_ < round_end_) add_iteration();
  round_.clear();
  const auto ended = [&](const Record& record) { return record.end < round_end_; };
  move_ready(host_records_, round_, ended);
  move_ready(operations_, round_, ended);
  Record tick;
  tick.start = tick.end = round_end_;
  round_.push_back(tick);
  return round_;
}

}  // namespace gpudiag::bench
