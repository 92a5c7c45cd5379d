// SPDX-License-Identifier: Apache-2.0
// What each kind of event becomes.
#include "sources/kineto_file/kineto_trace.hpp"

#include <gtest/gtest.h>

#include "read_trace.hpp"
#include "sources/launch_shape.hpp"

namespace gpudiag {
namespace {

using testing::gzip;
using testing::kLaunchAndKernel;
using testing::ReadTrace;
using testing::TraceFile;

std::string array(const std::string& events) {
  return "[" + events + "]";
}

TEST(KinetoTrace, ALaunchBecomesAnApiCall) {
  const ReadTrace read{array(kLaunchAndKernel)};
  const Record call = read.one(RecordKind::kApiCall);
  EXPECT_EQ(call.api, ApiClass::kLaunch);
  EXPECT_EQ(call.interval(), (Interval{TimePoint{0}, TimePoint{5500}}));
  EXPECT_EQ(call.thread, ThreadId{100});
  EXPECT_EQ(call.correlation, CorrelationId{42});
  EXPECT_EQ(read.name(call), "cudaLaunchKernel");
  EXPECT_EQ(call.flags, 0);
}

TEST(KinetoTrace, AKernelBecomesAnOperationOfItsLaunchersProcess) {
  const ReadTrace read{array(kLaunchAndKernel)};
  const Record kernel = read.one(RecordKind::kKernel);
  EXPECT_EQ(kernel.interval(), (Interval{TimePoint{10'250}, TimePoint{30'375}}));
  EXPECT_EQ(kernel.device, DeviceId{1});
  EXPECT_EQ(kernel.context, ContextId{3});
  EXPECT_EQ(kernel.stream, StreamId{7});
  EXPECT_EQ(kernel.correlation, CorrelationId{42});
  EXPECT_EQ(kernel.graph, GraphId{0});
  EXPECT_EQ(kernel.value, launch_shape({13, 2, 1}, {256, 1, 1}));
  EXPECT_EQ(read.name(kernel), "gemm");
  EXPECT_EQ(kernel.process, read.one(RecordKind::kApiCall).process);
}

TEST(KinetoTrace, OldAndNewCategoryNamesGiveTheSameRecords) {
  const std::string old_names = R"json([
    {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 9, "tid": "9", "ts": 1, "dur": 30, "args": {"Device": 9}},
    {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": "9", "ts": 2, "dur": 3, "args": {"correlation": 1, "external id": 5}},
    {"ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 9, "dur": 9, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 1, "grid": [1, 1, 1], "block": [32, 1, 1]}},
    {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": "stream 7", "ts": 20, "dur": 2, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 2, "bytes": 4}},
    {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 7", "ts": 30, "dur": 2, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 3, "bytes": 8}}])json";
  const std::string new_names = R"json([
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1.000, "dur": 30.000},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 2.000, "dur": 3.000, "args": {"External id": 5, "cbid": 211, "correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 9.000, "dur": 9.000, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 1, "grid": [1, 1, 1], "block": [32, 1, 1]}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 20.000, "dur": 2.000, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 2, "bytes": 4}},
    {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 30.000, "dur": 2.000, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 3, "bytes": 8}}])json";
  const ReadTrace old_trace{old_names};
  const ReadTrace new_trace{new_names};
  EXPECT_EQ(old_trace.records().size(), 5u);
  for (const RecordKind kind : {RecordKind::kRange, RecordKind::kApiCall, RecordKind::kKernel,
                                RecordKind::kMemcpy, RecordKind::kMemset}) {
    Record old_record = old_trace.one(kind);
    Record new_record = new_trace.one(kind);
    EXPECT_EQ(old_trace.name(old_record), new_trace.name(new_record));
    old_record.name = new_record.name = kNoName;  // numbered in order of appearance
    EXPECT_EQ(old_record, new_record);
  }
}

TEST(KinetoTrace, TheCopysNameSaysWhatItCopiesAndFromWhere) {
  const auto copy = [](const std::string& name) {
    return ReadTrace{
        array(
            R"json({"ph":"X","cat":"gpu_memcpy","name":")json" + name +
            R"json(","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0,"stream":7,"bytes":4294967295}})json")}
        .one(RecordKind::kMemcpy);
  };
  const Record pageable = copy("Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(pageable.copy, CopyKind::kHostToDevice);
  EXPECT_TRUE(pageable.has(record_flag::kPageable));
  EXPECT_EQ(pageable.value, 4294967295u);
  const Record pinned = copy("Memcpy DtoH (Device -> Pinned)");
  EXPECT_EQ(pinned.copy, CopyKind::kDeviceToHost);
  EXPECT_FALSE(pinned.has(record_flag::kPageable));
  EXPECT_TRUE(copy("Memcpy DtoH (Device -> Pageable)").has(record_flag::kPageable));
  EXPECT_EQ(copy("Memcpy DtoD (Device -> Device)").copy, CopyKind::kDeviceToDevice);
  EXPECT_EQ(copy("Memcpy PtoP (Device -> Device)").copy, CopyKind::kPeer);
  EXPECT_EQ(copy("Memcpy HtoA (Pinned -> Array)").copy, CopyKind::kHostToDevice);
  EXPECT_EQ(copy("Memcpy HtoH (Pinned -> Pageable)").copy, CopyKind::kHostToHost);
  EXPECT_EQ(copy("Memcpy").copy, CopyKind::kUnknown);
}

TEST(KinetoTrace, RangesKeepWhereTheyComeFrom) {
  const auto source = [](const std::string& category, const std::string& name) {
    return ReadTrace{array(R"json({"ph":"X","cat":")json" + category + R"json(","name":")json" +
                           name + R"json(","pid":5,"tid":6,"ts":1,"dur":2})json")}
        .one(RecordKind::kRange)
        .range;
  };
  EXPECT_EQ(source("cpu_op", "aten::add"), RangeSource::kOperator);
  EXPECT_EQ(source("user_annotation", "ProfilerStep#3"), RangeSource::kAnnotation);
  EXPECT_EQ(source("python_function", "train.py(3): step"), RangeSource::kPython);
  EXPECT_EQ(source("Operator", "aten::add"), RangeSource::kOperator);
  EXPECT_EQ(source("Operator", "ProfilerStep#3"), RangeSource::kAnnotation);
  EXPECT_EQ(source("Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
            RangeSource::kAnnotation);
}

TEST(KinetoTrace, AnAnnotationOnTheDeviceIsNoOperation) {
  const ReadTrace read{array(kLaunchAndKernel + R"json(,
    {"ph":"X","cat":"gpu_user_annotation","name":"ProfilerStep#1","pid":1,"tid":7,"ts":1000,"dur":500},
    {"ph":"X","cat":"overhead","name":"Buffer Flush","pid":-1,"tid":0,"ts":1000,"dur":500},
    {"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":900,"dur":500},
    {"ph":"s","id":42,"cat":"ac2g","name":"ac2g","pid":100,"tid":100,"ts":1000},
    {"ph":"f","bp":"e","id":1152921504606846976,"cat":"ac2g","name":"ac2g","pid":1,"tid":7,"ts":1010},
    {"ph":"i","s":"t","name":"[memory]","pid":100,"tid":100,"ts":1001,"args":{"Bytes":4}},
    {"name":"process_name","ph":"M","ts":1000,"pid":100,"tid":0,"args":{"name":"python"}})json")};
  EXPECT_EQ(read.records().size(), 2u);
  EXPECT_EQ(read.trace().info().events, 9u);
}

// T40: an operator's external id equals another call's correlation id.
TEST(KinetoTrace, ExternalIdsAndCorrelationIdsAreNotMixedUp) {
  const ReadTrace read{array(R"json(
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":1,"dur":1,"args":{"External id":8,"correlation":7}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":3,"dur":1,"args":{"External id":7,"correlation":8}},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":9,"dur":1,"args":{"External id":8,"device":0,"stream":7,"correlation":7}})json")};
  EXPECT_EQ(read.one(RecordKind::kKernel).correlation, CorrelationId{7});
  EXPECT_EQ(read.of_kind(RecordKind::kApiCall)[0].correlation, CorrelationId{7});
  EXPECT_EQ(read.of_kind(RecordKind::kApiCall)[1].correlation, CorrelationId{8});
}

// T41: a launch outside any operator; the external id must not stand in for the correlation.
TEST(KinetoTrace, AMissingCorrelationIsNone) {
  const ReadTrace read{array(
      R"json({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":9,"dur":1,"args":{"External id":8,"device":0,"stream":7}})json")};
  EXPECT_EQ(read.one(RecordKind::kKernel).correlation, kNoCorrelation);
}

// T34: a launch by a call that no list of names knows.
TEST(KinetoTrace, ACallOfUnknownNameKeepsItsCorrelation) {
  const ReadTrace read{array(
      R"json({"ph":"X","cat":"cuda_driver","name":"cbid 9999","pid":5,"tid":5,"ts":1,"dur":1,"args":{"cbid":9999,"correlation":7}})json")};
  const Record call = read.one(RecordKind::kApiCall);
  EXPECT_EQ(call.api, ApiClass::kOther);
  EXPECT_EQ(call.correlation, CorrelationId{7});
}

// T43: 32 bits that wrap.
TEST(KinetoTrace, CorrelationIdsMayWrap) {
  const ReadTrace read{array(R"json(
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":1,"dur":1,"args":{"correlation":4294967295}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":3,"dur":1,"args":{"correlation":-1}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":5,"dur":1,"args":{"correlation":1}})json")};
  ASSERT_EQ(read.records().size(), 3u);
  EXPECT_EQ(read.records()[0].correlation, CorrelationId{0xffffffffu});
  EXPECT_EQ(read.records()[1].correlation, CorrelationId{0xffffffffu});
  EXPECT_EQ(read.records()[2].correlation, CorrelationId{1});
}

TEST(KinetoTrace, GraphIdsAreKept) {
  const ReadTrace read{array(
      R"json({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":9,"dur":1,"args":{"device":0,"stream":7,"correlation":3,"graph id":11,"graph node id":47244640256}})json")};
  EXPECT_EQ(read.one(RecordKind::kKernel).graph, GraphId{11});
}

TEST(KinetoTrace, ASyncSaysWhichRecordedEventItWaitedFor) {
  const ReadTrace read{array(R"json(
    {"ph":"X","cat":"cuda_runtime","name":"cudaEventRecord","pid":5,"tid":5,"ts":10,"dur":2,"args":{"correlation":70}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaStreamWaitEvent","pid":5,"tid":5,"ts":20,"dur":2,"args":{"correlation":71}},
    {"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":9,"ts":20,"dur":1,
     "args":{"cuda_sync_kind":"Stream Wait Event","stream":9,"correlation":71,"device":0,"context":1,
             "wait_on_stream":7,"wait_on_cuda_event_record_corr_id":70,"wait_on_cuda_event_id":33}},
    {"ph":"X","cat":"cuda_sync","name":"Context Sync","pid":0,"tid":-1,"ts":30,"dur":4,
     "args":{"cuda_sync_kind":"Context Sync","stream":-1,"correlation":72,"device":0,"context":1}})json")};
  const std::vector<Record> syncs = read.of_kind(RecordKind::kSync);
  ASSERT_EQ(syncs.size(), 2u);
  EXPECT_EQ(syncs[0].sync, SyncKind::kStreamWaitsEvent);
  EXPECT_EQ(syncs[0].stream, StreamId{9});
  EXPECT_EQ(syncs[0].value, 33u);
  EXPECT_EQ(syncs[0].value2, 70u);
  EXPECT_EQ(syncs[1].sync, SyncKind::kContext);
  EXPECT_EQ(syncs[1].stream, kNoStream);
  EXPECT_EQ(syncs[1].value2, 0u);
  const Record recorded = read.one(RecordKind::kEventRecord);
  EXPECT_EQ(recorded.stream, StreamId{7});
  EXPECT_EQ(recorded.correlation, CorrelationId{70});
  EXPECT_EQ(recorded.value, 33u);
  EXPECT_EQ(recorded.start, TimePoint{2000}) << "when the call that recorded it returned";
}

TEST(KinetoTrace, BeginAndEndOfAThreadMakeOneRecord) {
  const ReadTrace read{array(R"json(
    {"ph":"B","cat":"user_annotation","name":"outer","pid":5,"tid":5,"ts":10},
    {"ph":"B","cat":"other","name":"no record","pid":5,"tid":5,"ts":11},
    {"ph":"B","cat":"cpu_op","name":"of another thread","pid":5,"tid":6,"ts":12},
    {"ph":"B","cat":"cpu_op","name":"inner","pid":5,"tid":5,"ts":13},
    {"ph":"E","pid":5,"tid":5,"ts":14},
    {"ph":"E","pid":5,"tid":5,"ts":15},
    {"ph":"E","pid":5,"tid":6,"ts":16},
    {"ph":"E","pid":5,"tid":5,"ts":20})json")};
  const std::vector<Record>& ranges = read.records();
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(read.name(ranges[0]), "inner");
  EXPECT_EQ(ranges[0].interval(), (Interval{TimePoint{3000}, TimePoint{4000}}));
  EXPECT_EQ(read.name(ranges[1]), "of another thread");
  EXPECT_EQ(ranges[1].interval(), (Interval{TimePoint{2000}, TimePoint{6000}}));
  EXPECT_EQ(read.name(ranges[2]), "outer");
  EXPECT_EQ(ranges[2].interval(), (Interval{TimePoint{0}, TimePoint{10'000}}));
}

TEST(KinetoTrace, ReadsWhatTheTraceSaysOfItself) {
  const ReadTrace read{R"json({"schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85017493504}, {"id": 1, "name": "NVIDIA H100"}],
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"ranks": [0, 1]}]},
    "traceEvents": [)json" +
                       kLaunchAndKernel + R"json(],
    "unknown": {"any": ["thing"]}, "traceName": "/tmp/a.json", "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1711964646000000000})json"};
  const RecordedInfo& info = read.trace().info();
  EXPECT_EQ(info.origin_unix_ns, "1711964646001000000");
  EXPECT_EQ(info.rank, 3u);
  EXPECT_EQ(info.world_size, 8u);
  EXPECT_EQ(info.backend, "nccl");
  EXPECT_EQ(info.trace_name, "/tmp/a.json");
  ASSERT_EQ(info.devices.size(), 2u);
  EXPECT_EQ(info.devices[1].id, DeviceId{1});
  EXPECT_EQ(info.devices[1].name, "NVIDIA H100");
  EXPECT_EQ(info.events, 2u);
}

// T31: what is absent is absent.
TEST(KinetoTrace, ATraceMaySayNothingOfItself) {
  const RecordedInfo info = ReadTrace{array(kLaunchAndKernel)}.trace().info();
  EXPECT_EQ(info.origin_unix_ns, "1000000");
  EXPECT_EQ(info.rank, std::nullopt);
  EXPECT_EQ(info.world_size, std::nullopt);
  EXPECT_TRUE(info.devices.empty());
}

TEST(KinetoTrace, AGzipFileIsReadLikeAPlainOne) {
  const ReadTrace plain{array(kLaunchAndKernel)};
  const ReadTrace zipped{gzip(array(kLaunchAndKernel))};
  EXPECT_EQ(plain.records(), zipped.records());
  EXPECT_EQ(plain.trace().info().json_bytes, zipped.trace().info().json_bytes);
  EXPECT_LT(zipped.trace().info().file_bytes, plain.trace().info().file_bytes);
}

TEST(KinetoTrace, ProgressEndsWithTheWholeFile) {
  const TraceFile file{array(kLaunchAndKernel)};
  std::uint64_t read = 0;
  std::uint64_t total = 0;
  ASSERT_TRUE(read_kineto(file.path(), {.on_progress =
                                                  [&](std::uint64_t now, std::uint64_t all) {
                                                    read = now;
                                                    total = all;
                                                  }})
                  .ok());
  EXPECT_EQ(read, array(kLaunchAndKernel).size());
  EXPECT_EQ(total, read);
}

}  // namespace
}  // namespace gpudiag
