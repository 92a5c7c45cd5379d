// SPDX-License-Identifier: Apache-2.0
// Traces that are not what they should be: what is lost, what is kept, and what is counted.
#include <gtest/gtest.h>

#include "read_trace.hpp"

namespace gpudiag {
namespace {

using testing::gzip;
using testing::kLaunchAndKernel;
using testing::ReadTrace;
using testing::TraceFile;

std::string array(const std::string& events) {
  return "[" + events + "]";
}

TEST(BrokenTrace, ATruncatedFileKeepsWhatCameBefore) {
  const ReadTrace read{R"json({"traceEvents": [)json" + kLaunchAndKernel +
                       R"json(, {"ph": "X", "cat": "ker)json"};
  EXPECT_EQ(read.records().size(), 2u);
  EXPECT_EQ(read.defects(Defect::kTruncated), 1u);
  EXPECT_EQ(read.defects(Defect::kBrokenEvent), 0u);
}

TEST(BrokenTrace, ATruncatedGzipFileKeepsWhatCameBefore) {
  std::string events = kLaunchAndKernel;
  for (int i = 0; i < 2000; ++i) {
    events += R"json(,{"ph":"X","cat":"cpu_op","name":"op)json" + std::to_string(i * 7919) +
              R"json(","pid":100,"tid":100,"ts":)json" + std::to_string(1000 + i) +
              R"json(,"dur":1})json";
  }
  std::string file = gzip(array(events));
  file.resize(file.size() / 2);
  const ReadTrace read{file};
  EXPECT_EQ(read.defects(Defect::kTruncated), 1u);
  EXPECT_GT(read.records().size(), 100u);
}

TEST(BrokenTrace, ABrokenEventCostsItselfAlone) {
  const ReadTrace read{array(R"json({"ph":"X","cat":"kernel","name":"a" "pid":0,"ts":1,"dur":1},
    {"ph":"X","cat":"kernel","name":"lost quote,"pid":0,"ts":1,"dur":1},
    {"ph":"X","cat":"kernel","name":"no time","pid":0,"dur":1},
    {"ph":"X","cat":"kernel","name":"bad time","pid":0,"ts":"soon","dur":1},
    )json" + kLaunchAndKernel)};
  EXPECT_EQ(read.records().size(), 2u);
  EXPECT_EQ(read.defects(Defect::kBrokenEvent), 4u);
  EXPECT_EQ(read.defects(Defect::kTruncated), 0u);
}

// T26: values that are no JSON, as `inf` bandwidth.
TEST(BrokenTrace, NaNAndInfinityAreAsIfAbsent) {
  const ReadTrace read{array(R"json(
    {"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pinned -> Device)","pid":0,"tid":7,"ts":5,"dur":0,
     "args":{"device":0,"stream":7,"correlation":3,"bytes":200,"memory bandwidth (GB/s)":Infinity,"x":-Infinity,"y":NaN,"z":inf}},
    {"ph":"X","cat":"gpu_memset","name":"Memset (Device)","pid":0,"tid":7,"ts":9,"dur":NaN,
     "args":{"device":0,"stream":7,"bytes":NaN}})json")};
  const Record copy = read.one(RecordKind::kMemcpy);
  EXPECT_EQ(copy.value, 200u);
  EXPECT_EQ(copy.start, copy.end);
  EXPECT_EQ(copy.flags, 0);
  const Record fill = read.one(RecordKind::kMemset);
  EXPECT_EQ(fill.value, 0u);
  EXPECT_TRUE(fill.has(record_flag::kIncomplete));
  EXPECT_EQ(read.defects(Defect::kBrokenEvent), 0u);
}

// T25: raw control characters in a name.
TEST(BrokenTrace, RawControlCharactersInNamesAreRepairedAndCounted) {
  using namespace std::string_literals;
  const ReadTrace read{
      array("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\x01"
            "b\0c\x7f\",\"pid\":1,\n\t\"tid\":1,\"ts\":5,\"dur\":1}"s)};
  EXPECT_EQ(read.name(read.one(RecordKind::kRange)), "a\uFFFDb\uFFFDc\uFFFD");
  EXPECT_EQ(read.defects(Defect::kRepairedText), 1u);
}

// T28: Latin-1 in a name, also where a name is cut within a character.
TEST(BrokenTrace, BadUtf8IsReplacedAndCounted) {
  const ReadTrace read{
      array("{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"Gr\xF6\xDF"
            "e \xE3\x82\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1}")};
  EXPECT_EQ(read.name(read.one(RecordKind::kRange)), "Gr\uFFFD\uFFFDe \uFFFD\uFFFD");
  EXPECT_EQ(read.defects(Defect::kRepairedText), 1u);
}

TEST(BrokenTrace, EscapedControlCharactersAreValidButGoNoFurther) {
  const ReadTrace read{array(
      R"json({"ph":"X","cat":"cpu_op","name":"two\nlines \"quoted\" \ud800","pid":1,"tid":1,"ts":5,"dur":1})json")};
  EXPECT_EQ(read.name(read.one(RecordKind::kRange)), "two\uFFFDlines \"quoted\" \uFFFD");
  EXPECT_EQ(read.defects(Defect::kRepairedText), 0u);
}

// T29: times as strings, ids past 2^53.
TEST(BrokenTrace, TimesAsStringsAndLargeIdsAreExact) {
  const ReadTrace read{array(R"json(
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":"5","tid":"1152921504606846977","ts":"1736412345678900.001","dur":"2.5","args":{"correlation":"12"}},
    {"ph":"X","cat":"kernel","name":"k","pid":"0","tid":"7","ts":"1736412345678901.234","dur":"0.300","args":{"device":"0","stream":"7","correlation":"12"}})json")};
  const Record kernel = read.one(RecordKind::kKernel);
  EXPECT_EQ(kernel.interval(), (Interval{TimePoint{1233}, TimePoint{1533}}));
  EXPECT_EQ(kernel.stream, StreamId{7});
  EXPECT_EQ(kernel.correlation, CorrelationId{12});
  EXPECT_EQ(read.one(RecordKind::kApiCall).end, TimePoint{2500});
  EXPECT_EQ(read.trace().info().origin_unix_ns, "1736412345678900001");
}

TEST(BrokenTrace, OfAKeyThatStandsTwiceTheLastCounts) {
  const ReadTrace read{array(
      R"json({"ph":"X","cat":"cpu_op","name":"first","pid":1,"tid":1,"ts":5,"dur":1,"name":"second","dur":2})json")};
  const Record range = read.one(RecordKind::kRange);
  EXPECT_EQ(read.name(range), "second");
  EXPECT_EQ(range.end, TimePoint{2000});
}

TEST(BrokenTrace, WithoutADurationAnEventIsIncomplete) {
  const ReadTrace read{array(
      R"json({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"args":{"device":0,"stream":7}},
         {"ph":"B","cat":"cpu_op","name":"never ends","pid":1,"tid":1,"ts":6})json")};
  const Record kernel = read.one(RecordKind::kKernel);
  EXPECT_TRUE(kernel.has(record_flag::kIncomplete));
  EXPECT_EQ(kernel.start, kernel.end);
  EXPECT_TRUE(read.one(RecordKind::kRange).has(record_flag::kIncomplete));
}

TEST(BrokenTrace, WithoutArgumentsTheRowSaysDeviceAndStream) {
  const Record kernel =
      ReadTrace{
          array(
              R"json({"ph":"X","cat":"Kernel","name":"k","pid":2,"tid":"stream 20","ts":5,"dur":1})json")}
          .one(RecordKind::kKernel);
  EXPECT_EQ(kernel.device, DeviceId{2});
  EXPECT_EQ(kernel.stream, StreamId{20});
  EXPECT_EQ(kernel.value, 0u);
}

TEST(BrokenTrace, AnEventWithoutAPhaseButWithADurationIsComplete) {
  EXPECT_EQ(ReadTrace{array(R"json({"cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":5,"dur":1},
                               {"cat":"cpu_op","name":"b","pid":1,"tid":1,"ts":5}, {}, {"args":{}})json")}
                .records()
                .size(),
            1u);
}

TEST(BrokenTrace, ArgumentsOfTheWrongKindAreAsIfAbsent) {
  const ReadTrace read{array(R"json(
    {"ph":"X","cat":"kernel","name":17,"pid":[0],"tid":{"a":1},"ts":5,"dur":1,"args":[1,2]},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":6,"dur":1,"args":{"grid":5,"block":"x","correlation":{"a":1},"stream":null}})json")};
  EXPECT_EQ(read.of_kind(RecordKind::kKernel).size(), 2u);
  EXPECT_EQ(read.of_kind(RecordKind::kKernel)[1].stream, StreamId{7});
}

// T31, T55: only CPU events; nothing at all.
TEST(BrokenTrace, ATraceWithoutDeviceEventsIsStillATrace) {
  const ReadTrace read{array(
      R"json({"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":5,"dur":1})json")};
  EXPECT_EQ(read.records().size(), 1u);
  EXPECT_EQ(read.trace().processes().front().operations, 0u);
}

TEST(BrokenTrace, ATraceWithoutEventsHasOneEmptyProcess) {
  const ReadTrace read{R"json({"traceEvents": []})json"};
  EXPECT_TRUE(read.records().empty());
  EXPECT_EQ(read.trace().processes().size(), 1u);
  EXPECT_EQ(read.trace().info().origin_unix_ns, "0");
}

TEST(BrokenTrace, OneKernelAloneIsKept) {
  const ReadTrace read{
      array(R"json({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5000,"dur":1})json")};
  EXPECT_EQ(read.one(RecordKind::kKernel).interval(), (Interval{TimePoint{0}, TimePoint{1000}}));
  EXPECT_EQ(read.trace().processes().front().operations, 1u);
}

TEST(BrokenTrace, WhatIsNoTraceIsSaidSo) {
  for (const char* text : {"", "hello", R"json({"a": 1})json", R"json({"a": [1,)json", "<html>"}) {
    const TraceFile file{text};
    const auto trace = read_kineto(file.path());
    ASSERT_FALSE(trace.ok()) << text;
    EXPECT_NE(trace.error().message.find("is no Chrome or Kineto trace"), std::string::npos);
  }
}

}  // namespace
}  // namespace gpudiag
