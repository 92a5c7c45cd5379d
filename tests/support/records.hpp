// SPDX-License-Identifier: Apache-2.0
// Literal records for tests: each builder names only what its test is about; what a test does not
// say is one process, one device 0 with one context, and host thread 1.
//
//   api(ApiClass::kLaunch, 0_us, 5_us, corr(1)), kernel(stream(7), 10_us, 20_us, corr(1))
//
// Times are [start, end) on the session clock.
#pragma once

#include <cstdint>

#include "record/record.hpp"

namespace gpudiag::testing {

inline namespace literals {
constexpr TimePoint operator""_ns(unsigned long long value) {
  return {static_cast<std::int64_t>(value)};
}
constexpr TimePoint operator""_us(unsigned long long value) {
  return {static_cast<std::int64_t>(value) * 1'000};
}
constexpr TimePoint operator""_ms(unsigned long long value) {
  return {static_cast<std::int64_t>(value) * 1'000'000};
}
}  // namespace literals

constexpr StreamId stream(std::uint32_t id) {
  return StreamId{id};
}
constexpr CorrelationId corr(std::uint32_t id) {
  return CorrelationId{id};
}
constexpr ThreadId thread(std::uint32_t id) {
  return ThreadId{id};
}
constexpr DeviceId device(std::uint32_t id) {
  return DeviceId{id};
}
constexpr EventId event(std::uint64_t id) {
  return EventId{id};
}

/// Contexts are numbered from 1, one a device.
constexpr ContextId context_of(DeviceId dev) {
  return ContextId{raw(dev) + 1};
}

inline Record span(RecordKind kind, TimePoint start, TimePoint end) {
  Record record;
  record.kind = kind;
  record.start = start;
  record.end = end;
  return record;
}

inline Record api(ApiClass call, TimePoint start, TimePoint end, CorrelationId id = kNoCorrelation,
                  ThreadId on = thread(1)) {
  Record record = span(RecordKind::kApiCall, start, end);
  record.api = call;
  record.correlation = id;
  record.thread = on;
  return record;
}

inline Record operation(RecordKind kind, StreamId on, TimePoint start, TimePoint end,
                        CorrelationId id, DeviceId dev = device(0)) {
  Record record = span(kind, start, end);
  record.device = dev;
  record.context = context_of(dev);
  record.stream = on;
  record.correlation = id;
  return record;
}

inline Record kernel(StreamId on, TimePoint start, TimePoint end, CorrelationId id,
                     DeviceId dev = device(0)) {
  return operation(RecordKind::kKernel, on, start, end, id, dev);
}

inline Record memcpy_of(CopyKind copy, std::uint64_t bytes, StreamId on, TimePoint start,
                        TimePoint end, CorrelationId id, DeviceId dev = device(0)) {
  Record record = operation(RecordKind::kMemcpy, on, start, end, id, dev);
  record.copy = copy;
  record.value = bytes;
  return record;
}

/// `recorded_by`: correlation of the record call the event was last recorded by.
inline Record sync(SyncKind kind, TimePoint start, TimePoint end, CorrelationId id,
                   StreamId on = kNoStream, EventId waited = event(0),
                   CorrelationId recorded_by = kNoCorrelation, DeviceId dev = device(0)) {
  Record record = span(RecordKind::kSync, start, end);
  record.sync = kind;
  record.device = dev;
  record.context = context_of(dev);
  record.stream = on;
  record.correlation = id;
  record.value = raw(waited);
  record.value2 = raw(recorded_by);
  return record;
}

inline Record event_record(StreamId on, EventId recorded, TimePoint at, CorrelationId id,
                           DeviceId dev = device(0)) {
  Record record = span(RecordKind::kEventRecord, at, at);
  record.device = dev;
  record.context = context_of(dev);
  record.stream = on;
  record.correlation = id;
  record.value = raw(recorded);
  return record;
}

inline Record range(NameId name, TimePoint start, TimePoint end,
                    RangeSource source = RangeSource::kAnnotation, ThreadId on = thread(1)) {
  Record record = span(RecordKind::kRange, start, end);
  record.range = source;
  record.thread = on;
  record.name = name;
  return record;
}

/// Ends iteration `index` and begins the next.
inline Record mark(TimePoint at, std::uint64_t index, MarkSource source = MarkSource::kStep,
                   ThreadId on = thread(1)) {
  Record record = span(RecordKind::kMark, at, at);
  record.mark = source;
  record.thread = on;
  record.value = index;
  return record;
}

inline Record tick(TimePoint at) {
  return span(RecordKind::kTick, at, at);
}

}  // namespace gpudiag::testing
