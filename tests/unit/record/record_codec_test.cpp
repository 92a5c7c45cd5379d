// SPDX-License-Identifier: Apache-2.0
#include "record/record_codec.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "record/crc32.hpp"

namespace gpudiag {
namespace {

Record back_and_forth(const Record& record, TimePoint previous) {
  std::string bytes;
  TimePoint writer = previous;
  append_record(bytes, record, writer);
  std::string_view rest = bytes;
  TimePoint reader = previous;
  const auto read = take_record(rest, reader);
  EXPECT_TRUE(read.has_value());
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(reader, writer);
  return read.value_or(Record{});
}

Record every_field() {
  Record r;
  r.kind = RecordKind::kSync;
  r.start = TimePoint{1'000'000'007};
  r.end = TimePoint{1'000'000'001};
  r.value = ~std::uint64_t{0};
  r.value2 = 12;
  r.process = ProcessId{1};
  r.thread = ThreadId{0xffffffff};
  r.device = DeviceId{0};
  r.context = ContextId{3};
  r.stream = StreamId{0xfffffffe};
  r.correlation = CorrelationId{0xffffffff};
  r.graph = GraphId{9};
  r.name = NameId{77};
  r.flags = 0xffff;
  r.api = ApiClass::kModule;
  r.copy = CopyKind::kHostToHost;
  r.sync = SyncKind::kContext;
  r.range = RangeSource::kHook;
  r.mark = MarkSource::kWindow;
  r.gap = GapReason::kStopped;
  r.cause = 9;
  r.sub_cause = 33;
  r.state = HostState::kGone;
  return r;
}

TEST(RecordCodec, EveryFieldSurvives) {
  EXPECT_EQ(back_and_forth(every_field(), TimePoint{5}), every_field());
}

TEST(RecordCodec, ADefaultRecordSurvives) { EXPECT_EQ(back_and_forth(Record{}, {}), Record{}); }

TEST(RecordCodec, TimesAtBothEndsOfTheClockSurvive) {
  Record r;
  r.start = kTimeMin;
  r.end = kTimeMax;
  EXPECT_EQ(back_and_forth(r, kTimeMax), r);
}

TEST(RecordCodec, AKernelAfterAnotherTakesFewBytes) {
  Record kernel;
  kernel.kind = RecordKind::kKernel;
  kernel.start = TimePoint{5'000'010'000};
  kernel.end = kernel.start + microseconds(12);
  kernel.device = DeviceId{0};
  kernel.context = ContextId{1};
  kernel.stream = StreamId{7};
  kernel.correlation = CorrelationId{812'345};
  kernel.name = NameId{40};
  kernel.value = 0x1234567;
  std::string bytes;
  TimePoint previous{5'000'000'000};
  append_record(bytes, kernel, previous);
  EXPECT_LE(bytes.size(), 24u);
}

TEST(RecordCodec, EachPrefixOfARecordIsRefused) {
  std::string bytes;
  TimePoint previous;
  append_record(bytes, every_field(), previous);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::string_view cut = std::string_view{bytes}.substr(0, size);
    EXPECT_FALSE(take_record(cut, previous).has_value()) << size;
  }
}

TEST(RecordCodec, AnEnumeratorOfALaterVersionIsRefused) {
  std::string bytes;
  append_varint(bytes, 1);  // only the kind
  append_varint(bytes, static_cast<std::uint64_t>(RecordKind::kHostSample) + 1);
  std::string_view rest = bytes;
  TimePoint previous;
  EXPECT_FALSE(take_record(rest, previous).has_value());
}

TEST(RecordCodec, AFieldOfALaterVersionIsSkipped) {
  std::string bytes;
  append_varint(bytes, 1 | (std::uint64_t{1} << 40));
  append_varint(bytes, static_cast<std::uint64_t>(RecordKind::kLost));
  append_varint(bytes, 123456);
  std::string_view rest = bytes;
  TimePoint previous;
  const auto read = take_record(rest, previous);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->kind, RecordKind::kLost);
  EXPECT_TRUE(rest.empty());
}

TEST(RecordCodec, AnyBytesAreReadOrRefusedWithoutHarm) {
  std::mt19937_64 random{7};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    std::string_view rest = bytes;
    TimePoint previous;
    while (take_record(rest, previous)) {
    }
    EXPECT_LE(rest.size(), bytes.size());
  }
}

TEST(Varint, ANumberOfMoreThan64BitsIsRefused) {
  std::string_view bytes = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
  EXPECT_FALSE(take_varint(bytes).has_value());
  std::string largest;
  append_varint(largest, std::numeric_limits<std::uint64_t>::max());
  std::string_view rest = largest;
  EXPECT_EQ(take_varint(rest), std::numeric_limits<std::uint64_t>::max());
}

TEST(Crc32, GivesTheStandardsCheckValue) {
  EXPECT_EQ(crc32("123456789"), 0xCBF43926u);
  EXPECT_EQ(crc32("6789", crc32("12345")), 0xCBF43926u);
}

}  // namespace
}  // namespace gpudiag
