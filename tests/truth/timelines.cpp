// SPDX-License-Identifier: Apache-2.0
#include "timelines.hpp"

#include <algorithm>
#include <array>

#include "scenarios.hpp"

namespace gpudiag::truth {
namespace {

constexpr std::array kRangeNames{"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                                 "torch.save",
                                 "aten::item",
                                 "aten::linear",
                                 "Optimizer.step#SGD.step",
                                 "whatever"};

class Nonsense {
 public:
  Nonsense(std::uint64_t seed, NameTable& names) : draw_(seed, "nonsense") {
    for (const char* name : kRangeNames) names_.push_back(names.intern(name));
  }

  std::vector<Record> records() {
    const std::uint64_t count = 50 + draw_.below(600);
    for (std::uint64_t i = 0; i < count; ++i) add_something();
    const std::uint64_t marks = draw_.below(6);
    for (std::uint64_t i = 0; i < marks; ++i) {
      Record mark = placed(RecordKind::kMark, 0);
      mark.value = i;
      out_.push_back(mark);
    }
    return std::move(out_);
  }

 private:
  // No two records begin at the same nanosecond: which of two such calls came first, no record
  // says.
  Record placed(RecordKind kind, std::uint64_t longest_ns) {
    Record record;
    record.kind = kind;
    const std::uint64_t slot = draw_.below(20'000'000 / kSlot);
    record.start = {static_cast<std::int64_t>(slot * kSlot + used_++ % kSlot)};
    record.end = record.start + DurationNs{static_cast<std::int64_t>(draw_.below(longest_ns + 1))};
    record.thread = ThreadId{static_cast<std::uint32_t>(1 + draw_.below(3))};
    return record;
  }

  void on_stream(Record& record) {
    record.device = DeviceId{static_cast<std::uint32_t>(draw_.below(2))};
    record.context = ContextId{raw(record.device) + 1};
    record.stream = StreamId{static_cast<std::uint32_t>(7 + draw_.below(3))};
  }

  void add_something() {
    switch (draw_.below(8)) {
      case 0:
        return add_range();
      case 1:
        return add_wait();
      case 2: {
        Record call = placed(RecordKind::kApiCall, 500'000);
        call.api = static_cast<ApiClass>(draw_.below(20));
        call.correlation = CorrelationId{++last_};
        out_.push_back(call);
        return;
      }
      default:
        return add_launch();
    }
  }

  void add_launch() {
    Record call = placed(RecordKind::kApiCall, 20'000);
    call.api = draw_.chance(80) ? ApiClass::kLaunch : ApiClass::kMemcpyAsync;
    call.correlation = CorrelationId{++last_};
    if (draw_.chance(90)) out_.push_back(call);
    Record operation =
        placed(call.api == ApiClass::kLaunch ? RecordKind::kKernel : RecordKind::kMemcpy, 100'000);
    // Mostly after its launch, as it should be.
    if (draw_.chance(90)) {
      const DurationNs length = operation.end - operation.start;
      operation.start = call.end + DurationNs{static_cast<std::int64_t>(draw_.below(300'000))};
      operation.end = operation.start + length;
    }
    operation.thread = {};
    on_stream(operation);
    operation.correlation = call.correlation;
    if (operation.kind == RecordKind::kMemcpy)
      operation.copy = static_cast<CopyKind>(draw_.below(6));
    if (draw_.chance(90)) out_.push_back(operation);
  }

  void add_range() {
    Record range = placed(RecordKind::kRange, 3'000'000);
    range.range = static_cast<RangeSource>(draw_.below(6));
    range.name = names_[draw_.below(names_.size())];
    out_.push_back(range);
  }

  void add_wait() {
    Record call = placed(RecordKind::kApiCall, 900'000);
    const bool records = draw_.chance(40);
    call.api = records            ? ApiClass::kEventRecord
               : draw_.chance(50) ? ApiClass::kStreamWait
                                  : ApiClass::kStreamSync;
    call.correlation = CorrelationId{++last_};
    out_.push_back(call);
    Record detail = call;
    detail.api = ApiClass::kOther;
    detail.kind = records ? RecordKind::kEventRecord : RecordKind::kSync;
    if (!records) detail.sync = static_cast<SyncKind>(draw_.below(5));
    on_stream(detail);
    detail.value = 1 + draw_.below(3);
    if (draw_.chance(80)) out_.push_back(detail);
  }

  Noise draw_;
  std::vector<NameId> names_;
  std::vector<Record> out_;
  static constexpr std::uint64_t kSlot = 2'048;
  std::uint64_t used_ = 0;
  std::uint32_t last_ = 0;
};

}  // namespace

std::vector<Record> sensible_records(std::uint64_t seed, NameTable& names) {
  Scenario scenario = random_scenario(seed);
  scenario.shape.iterations = kSensibleIterations;
  scenario.tracer.ticks = false;
  const Program program = write_job(scenario.shape, scenario.troubles, scenario.troubles);
  return trace(program, execute(program), scenario.tracer, names);
}

std::vector<Record> nonsense_records(std::uint64_t seed, NameTable& names) {
  return Nonsense(seed, names).records();
}

std::vector<Record> garbage_records(std::uint64_t seed) {
  Noise draw(seed, "garbage");
  auto any = [&] { return draw.below(~std::uint64_t{0}); };
  auto any32 = [&] { return static_cast<std::uint32_t>(draw.chance(70) ? draw.below(8) : any()); };
  // Mostly near each other, so that things meet; sometimes anywhere at all.
  auto time = [&] {
    if (draw.chance(3)) return draw.chance(50) ? kTimeMin : kTimeMax;
    return TimePoint{static_cast<std::int64_t>(draw.chance(90) ? draw.below(3'000'000) : any())};
  };
  std::vector<Record> records(200 + draw.below(300));
  for (Record& record : records) {
    record.start = time();
    record.end = time();
    record.value = draw.chance(70) ? draw.below(8) : any();
    record.value2 = draw.chance(70) ? draw.below(8) : any();
    record.process = ProcessId{draw.chance(90) ? 0 : any32()};
    record.thread = ThreadId{any32()};
    record.device = DeviceId{any32()};
    record.context = ContextId{any32()};
    record.stream = StreamId{any32()};
    record.correlation = CorrelationId{any32()};
    record.graph = GraphId{any32()};
    record.name = NameId{any32()};
    record.flags = draw.chance(70) ? std::uint16_t{0} : static_cast<std::uint16_t>(any() & 0x1ff);
    record.kind = static_cast<RecordKind>(draw.below(13));
    record.api = static_cast<ApiClass>(draw.below(20));
    record.copy = static_cast<CopyKind>(draw.below(6));
    record.sync = static_cast<SyncKind>(draw.below(5));
    record.range = static_cast<RangeSource>(draw.below(6));
    record.mark = static_cast<MarkSource>(draw.below(6));
    record.gap = static_cast<GapReason>(draw.below(3));
    record.cause = static_cast<std::uint8_t>(draw.chance(80) ? 0 : draw.below(kCauseCount + 1));
    record.sub_cause = static_cast<std::uint8_t>(draw.below(kSubCauseNames.size()));
  }
  return records;
}

std::vector<Record> shuffled(std::vector<Record> records, std::uint64_t seed) {
  Noise draw(seed, "order");
  for (std::size_t i = records.size(); i > 1; --i)
    std::swap(records[i - 1], records[draw.below(i)]);
  return records;
}

std::vector<Record> shifted(std::vector<Record> records, DurationNs by) {
  for (Record& record : records) {
    record.start += by;
    record.end += by;
  }
  return records;
}

std::vector<Record> renamed(std::vector<Record> records) {
  for (Record& record : records) {
    record.thread = ThreadId{977 - raw(record.thread) % 900};
    record.context = ContextId{raw(record.context) + 40};
    if (record.stream != kNoStream) record.stream = StreamId{500 - raw(record.stream)};
    if (record.correlation != kNoCorrelation)
      record.correlation = CorrelationId{raw(record.correlation) ^ 0x5a5a0000u};
    const bool names_event =
        record.kind == RecordKind::kSync || record.kind == RecordKind::kEventRecord;
    if (names_event && record.value != 0) record.value = 90'000 - record.value;
    if (record.kind == RecordKind::kSync && record.value2 != 0) record.value2 ^= 0x5a5a0000u;
  }
  return records;
}

}  // namespace gpudiag::truth
