// SPDX-License-Identifier: Apache-2.0
#include "record/record_codec.hpp"

#include <array>
#include <bit>

namespace gpudiag {
namespace {

// Bit numbers of the fields in a record's mask. Part of the format: append, never renumber.
enum Field : unsigned {
  kKind, kStart, kLength, kValue, kValue2, kProcess, kThread, kDevice, kContext, kStream,
  kCorrelation, kGraph, kName, kFlags, kApi, kCopy, kSync, kRange, kMark, kGap, kCause, kSubCause, kState,
  kFieldCount,
};

// Small for small numbers of either sign.
std::uint64_t zigzag(std::uint64_t number) { return (number << 1) ^ (0 - (number >> 63)); }
std::uint64_t unzigzag(std::uint64_t number) { return (number >> 1) ^ (0 - (number & 1)); }

// Differences are taken modulo 2^64, so that any two times can be told from each other.
std::uint64_t difference(TimePoint a, TimePoint b) {
  return zigzag(static_cast<std::uint64_t>(a.ns) - static_cast<std::uint64_t>(b.ns));
}

TimePoint moved(TimePoint from, std::uint64_t by) {
  return {static_cast<std::int64_t>(static_cast<std::uint64_t>(from.ns) + unzigzag(by))};
}

using Fields = std::array<std::uint64_t, kFieldCount>;

Fields fields_of(const Record& record, TimePoint previous_start) {
  Fields fields{};
  fields[kKind] = static_cast<std::uint64_t>(record.kind);
  fields[kStart] = difference(record.start, previous_start);
  fields[kLength] = difference(record.end, record.start);
  fields[kValue] = record.value;
  fields[kValue2] = record.value2;
  fields[kProcess] = raw(record.process);
  fields[kThread] = raw(record.thread);
  // Plus one, as the default, "none", is all ones: it becomes the zero that is not written.
  fields[kDevice] = raw(record.device) + std::uint32_t{1};
  fields[kContext] = raw(record.context);
  fields[kStream] = raw(record.stream) + std::uint32_t{1};
  fields[kCorrelation] = raw(record.correlation);
  fields[kGraph] = raw(record.graph);
  fields[kName] = raw(record.name);
  fields[kFlags] = record.flags;
  fields[kApi] = static_cast<std::uint64_t>(record.api);
  fields[kCopy] = static_cast<std::uint64_t>(record.copy);
  fields[kSync] = static_cast<std::uint64_t>(record.sync);
  fields[kRange] = static_cast<std::uint64_t>(record.range);
  fields[kMark] = static_cast<std::uint64_t>(record.mark);
  fields[kGap] = static_cast<std::uint64_t>(record.gap);
  fields[kCause] = record.cause;
  fields[kSubCause] = record.sub_cause;
  fields[kState] = static_cast<std::uint64_t>(record.state);
  return fields;
}

// The largest number each field can hold; a larger one is damage, or an enumerator of the future.
constexpr std::uint64_t limit_of(unsigned field) {
  switch (field) {
    case kKind: return static_cast<std::uint64_t>(RecordKind::kHostSample);
    case kApi: return static_cast<std::uint64_t>(ApiClass::kModule);
    case kCopy: return static_cast<std::uint64_t>(CopyKind::kHostToHost);
    case kSync: return static_cast<std::uint64_t>(SyncKind::kContext);
    case kRange: return static_cast<std::uint64_t>(RangeSource::kHook);
    case kMark: return static_cast<std::uint64_t>(MarkSource::kWindow);
    case kGap: return static_cast<std::uint64_t>(GapReason::kStopped);
    case kState: return static_cast<std::uint64_t>(HostState::kGone);
    case kCause:
    case kSubCause: return 0xFF;
    case kFlags: return 0xFFFF;
    case kStart:
    case kLength:
    case kValue:
    case kValue2: return ~std::uint64_t{0};
    default: return 0xFFFF'FFFF;
  }
}

Record record_of(const Fields& fields, TimePoint previous_start) {
  const auto u32 = [&](Field field) { return static_cast<std::uint32_t>(fields[field]); };
  Record record;
  record.kind = static_cast<RecordKind>(fields[kKind]);
  record.start = moved(previous_start, fields[kStart]);
  record.end = moved(record.start, fields[kLength]);
  record.value = fields[kValue];
  record.value2 = fields[kValue2];
  record.process = ProcessId{u32(kProcess)};
  record.thread = ThreadId{u32(kThread)};
  record.device = DeviceId{u32(kDevice) - 1};
  record.context = ContextId{u32(kContext)};
  record.stream = StreamId{u32(kStream) - 1};
  record.correlation = CorrelationId{u32(kCorrelation)};
  record.graph = GraphId{u32(kGraph)};
  record.name = NameId{u32(kName)};
  record.flags = static_cast<std::uint16_t>(fields[kFlags]);
  record.api = static_cast<ApiClass>(fields[kApi]);
  record.copy = static_cast<CopyKind>(fields[kCopy]);
  record.sync = static_cast<SyncKind>(fields[kSync]);
  record.range = static_cast<RangeSource>(fields[kRange]);
  record.mark = static_cast<MarkSource>(fields[kMark]);
  record.gap = static_cast<GapReason>(fields[kGap]);
  record.cause = static_cast<std::uint8_t>(fields[kCause]);
  record.sub_cause = static_cast<std::uint8_t>(fields[kSubCause]);
  record.state = static_cast<HostState>(fields[kState]);
  return record;
}

}  // namespace

void append_varint(std::string& out, std::uint64_t number) {
  while (number >= 0x80) {
    out += static_cast<char>((number & 0x7F) | 0x80);
    number >>= 7;
  }
  out += static_cast<char>(number);
}

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    if (shift == 63 && byte > 1) return std::nullopt;
    number |= static_cast<std::uint64_t>(byte & 0x7Fu) << shift;
    if ((byte & 0x80u) == 0) return number;
  }
  return std::nullopt;
}

void append_text(std::string& out, std::string_view text) {
  append_varint(out, text.size());
  out += text;
}

std::optional<std::string_view> take_text(std::string_view& bytes) {
  const auto size = take_varint(bytes);
  if (!size || *size > bytes.size()) return std::nullopt;
  const std::string_view text = bytes.substr(0, *size);
  bytes.remove_prefix(*size);
  return text;
}

void append_record(std::string& out, const Record& record, TimePoint& previous_start) {
  const Fields fields = fields_of(record, previous_start);
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < kFieldCount; ++i)
    if (fields[i] != 0) mask |= std::uint64_t{1} << i;
  append_varint(out, mask);
  for (std::uint64_t field : fields)
    if (field != 0) append_varint(out, field);
  previous_start = record.start;
}

std::optional<Record> take_record(std::string_view& bytes, TimePoint& previous_start) {
  const auto mask = take_varint(bytes);
  if (!mask) return std::nullopt;
  Fields fields{};
  for (std::uint64_t left = *mask; left != 0; left &= left - 1) {
    const auto field = static_cast<unsigned>(std::countr_zero(left));
    const auto number = take_varint(bytes);
    if (!number) return std::nullopt;
    if (field >= kFieldCount) continue;  // a later version's
    if (*number > limit_of(field)) return std::nullopt;
    fields[field] = *number;
  }
  const Record record = record_of(fields, previous_start);
  previous_start = record.start;
  return record;
}

}  // namespace gpudiag
