// SPDX-License-Identifier: Apache-2.0
// Literal rows in, exact records out.
#include "sources/nsys_file/nsys_trace.hpp"

#include <gtest/gtest.h>

#include "export_file.hpp"
#include "sources/launch_shape.hpp"

namespace gpudiag::testing {
namespace {

constexpr Interval between(std::int64_t start, std::int64_t end) { return {TimePoint{start}, TimePoint{end}}; }

TEST(NsysTrace, ALaunchAndItsKernelAreJoinedByCorrelation) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(call(1, 42, 5000, 5500)).sql(kernel(42, 6000, 9000))};
  const Record launch = read.one(RecordKind::kApiCall);
  EXPECT_EQ(read.name(launch), "cudaLaunchKernel");
  EXPECT_EQ(launch.api, ApiClass::kLaunch);
  EXPECT_EQ(launch.interval(), between(0, 500));
  EXPECT_EQ(launch.thread, ThreadId{100});
  EXPECT_EQ(launch.correlation, CorrelationId{42});
  const Record operation = read.one(RecordKind::kKernel);
  EXPECT_EQ(read.name(operation), "gemm(float*)");
  EXPECT_EQ(operation.interval(), between(1000, 4000));
  EXPECT_EQ(operation.device, DeviceId{0});
  EXPECT_EQ(operation.context, ContextId{1});
  EXPECT_EQ(operation.stream, StreamId{7});
  EXPECT_EQ(operation.correlation, CorrelationId{42});
  EXPECT_EQ(operation.process, launch.process);
  EXPECT_EQ(operation.value, launch_shape({13, 2, 1}, {256, 1, 1}));
  EXPECT_EQ(operation.graph, GraphId{});
}

TEST(NsysTrace, AKernelWithoutACallIsReadToo) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(kernel(42, 6000, 9000))};
  EXPECT_EQ(read.one(RecordKind::kKernel).correlation, CorrelationId{42});
  EXPECT_TRUE(read.says("CUPTI_ACTIVITY_KIND_RUNTIME is empty: no CUDA calls"));
}

TEST(NsysTrace, TheShortNameStandsInForADemangledOneThatIsMissing) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(kernel(1, 0, 10, 100, 0, 999))};
  EXPECT_EQ(read.name(read.one(RecordKind::kKernel)), "gemm");
}

TEST(NsysTrace, DriverCallsAndFailedCallsAreMarked) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(call(8, 1, 10, 20) + call(1, 2, 30, 40, 100, 101, 2) +
                                                      call(1, 3, 50, 60, 100, 101, 600))};
  const auto calls = read.of_kind(RecordKind::kApiCall);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].flags, record_flag::kDriverApi);
  EXPECT_EQ(calls[0].api, ApiClass::kLaunch);
  EXPECT_EQ(calls[1].flags, record_flag::kFailed);
  EXPECT_EQ(calls[1].thread, ThreadId{101});
  EXPECT_EQ(calls[2].flags, 0);  // "not ready" is an answer
}

TEST(NsysTrace, CopiesKeepTheirKindSizeAndMemory) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES "
      "(10,20,0,1,7,1,281476654432256,64,1,0,2,NULL,NULL), (20,30,0,1,7,2,281476654432256,65,2,2,1,NULL,NULL), "
      "(30,40,0,1,7,3,281476654432256,66,8,2,2,NULL,NULL), (40,50,0,1,7,4,281476654432256,67,10,2,2,0,1), "
      "(50,60,0,1,7,5,281476654432256,68,8,2,2,0,1), (60,70,0,1,7,6,281476654432256,69,99,NULL,NULL,NULL,NULL)")};
  const auto copies = read.of_kind(RecordKind::kMemcpy);
  ASSERT_EQ(copies.size(), 6u);
  const CopyKind kinds[] = {CopyKind::kHostToDevice, CopyKind::kDeviceToHost, CopyKind::kDeviceToDevice,
                            CopyKind::kPeer,         CopyKind::kPeer,         CopyKind::kUnknown};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(copies[i].copy, kinds[i]) << i;
    EXPECT_EQ(copies[i].value, 64 + i) << i;
    EXPECT_EQ(copies[i].has(record_flag::kPageable), i == 0) << i;
  }
}

TEST(NsysTrace, TheFilesOwnNumbersOfKindsGoBeforeOurs) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER, name TEXT);"
      "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'CUDA_MEMCPY_KIND_DTOH');"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10,20,0,1,7,1,281476654432256,64,1,2,2,NULL,NULL)")};
  EXPECT_EQ(read.one(RecordKind::kMemcpy).copy, CopyKind::kDeviceToHost);
}

TEST(NsysTrace, CopiesOfUnifiedMemoryAreNoOperations) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      kernel(1, 0, 5) +
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10,20,0,1,7,0,281476654432256,64,11,4,2,NULL,NULL)")};
  EXPECT_TRUE(read.of_kind(RecordKind::kMemcpy).empty());
  EXPECT_TRUE(read.says("1 copies of unified memory"));
}

TEST(NsysTrace, AMemsetKeepsItsSize) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (10,20,1,2,9,3,281476654432256,4096)")};
  const Record memset = read.one(RecordKind::kMemset);
  EXPECT_EQ(memset.value, 4096u);
  EXPECT_EQ(memset.device, DeviceId{1});
  EXPECT_EQ(memset.stream, StreamId{9});
}

TEST(NsysTrace, NodesOfAGraphShareTheirLaunchAndNameTheirGraph) {
  const std::int64_t node = (std::int64_t{5} << 32) | 3;
  const ReadExport read{ExportFile{}.sql(kTables).sql(call(11, 9, 0, 10) + kernel(9, 20, 30, 100, 0, 2, node) +
                                                      kernel(9, 30, 40, 100, 0, 2, node + 1))};
  const auto kernels = read.of_kind(RecordKind::kKernel);
  ASSERT_EQ(kernels.size(), 2u);
  for (const Record& each : kernels) {
    EXPECT_EQ(each.correlation, CorrelationId{9});
    EXPECT_EQ(each.graph, GraphId{5});
  }
}

TEST(NsysTrace, AGraphRecordedAsAWholeIsOneOpaqueOperation) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      call(11, 9, 0, 10) +
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, \"end\" INTEGER, deviceId INTEGER, "
      "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, "
      "graphExecId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (20,80,0,1,7,9,281476654432256,4,6)")};
  const Record graph = read.one(RecordKind::kGraph);
  EXPECT_EQ(graph.interval(), between(20, 80));
  EXPECT_EQ(graph.graph, GraphId{6});
  EXPECT_EQ(graph.correlation, CorrelationId{9});
  EXPECT_TRUE(read.says("--cuda-graph-trace=node"));
}

// The file says device 0 for all of them.
TEST(NsysTrace, AWaitIsOnTheDeviceOfItsContext) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      kernel(1, 0, 10, 100, 3) + call(5, 2, 20, 30) +
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (22,28,0,1,7,2,281476654432256,2,77,5),"
      "(32,38,0,55,7,3,281476654432256,3,4294967295,0)")};
  const auto waits = read.of_kind(RecordKind::kSync);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].sync, SyncKind::kStreamWaitsEvent);
  EXPECT_EQ(waits[0].device, DeviceId{3});
  EXPECT_EQ(waits[0].stream, StreamId{7});
  EXPECT_EQ(waits[0].value, 77u);
  EXPECT_EQ(waits[1].sync, SyncKind::kStream);
  EXPECT_EQ(waits[1].device, kNoDevice);  // nothing ran in context 55
  EXPECT_EQ(waits[1].stream, kNoStream);
  EXPECT_EQ(waits[1].value, 0u);
}

TEST(NsysTrace, AWaitNamesTheCallThatRecordedItsEvent) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      kernel(1, 0, 10) + call(4, 2, 12, 15) + call(5, 3, 20, 30) +
      "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0,1,7,2,281476654432256,77,5);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (22,28,0,1,9,3,281476654432256,2,77,5)")};
  const Record event = read.one(RecordKind::kEventRecord);
  EXPECT_EQ(event.interval(), between(12, 12));  // as its call begins
  EXPECT_EQ(event.stream, StreamId{7});
  EXPECT_EQ(event.value, 77u);
  EXPECT_EQ(event.thread, ThreadId{100});
  EXPECT_EQ(read.one(RecordKind::kSync).value2, 2u);
}

TEST(NsysTrace, RangesHaveTheirTextOrTheirNumberedText) {
  const std::int64_t thread = global_id(100, 101);
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      "INSERT INTO NVTX_EVENTS(start,\"end\",eventType,text,textId,globalTid,domainId) VALUES "
      "(10,20,59,'step',NULL," + std::to_string(thread) + ",0), (20,30,60,NULL,7," + std::to_string(thread) +
      ",3), (25,NULL,34,'saved',NULL," + std::to_string(thread) + ",0), "
      "(1,NULL,75,'a domain',NULL," + std::to_string(thread) + ",3), (30,40,59,NULL,NULL," +
      std::to_string(thread) + ",0)")};
  const auto ranges = read.of_kind(RecordKind::kRange);
  ASSERT_EQ(ranges.size(), 4u);  // not the making of a domain
  EXPECT_EQ(read.name(ranges[0]), "step");
  EXPECT_EQ(read.name(ranges[2]), "load");
  EXPECT_EQ(ranges[2].interval(), between(10, 20));
  EXPECT_EQ(read.name(ranges[1]), "saved");  // a mark: an instant
  EXPECT_EQ(ranges[1].interval(), between(15, 15));
  EXPECT_EQ(ranges[1].flags, 0);
  EXPECT_EQ(ranges[3].name, kNoName);
  for (const Record& each : ranges) {
    EXPECT_EQ(each.range, RangeSource::kNvtx);
    EXPECT_EQ(each.thread, ThreadId{101});
  }
}

// Thousands of names that differ in their numbers are one operator.
TEST(NsysTrace, OperatorsOfPyTorchLoseTheirNumbers) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      range("aten::add, seq = 12, op_id = 34", 10, 20) + range("aten::add, op_id = 35", 20, 30) +
      range("Optimizer.step#SGD.step, op_id = 36", 30, 40) + range("my, own range", 40, 50))};
  const auto ranges = read.of_kind(RecordKind::kRange);
  ASSERT_EQ(ranges.size(), 4u);
  EXPECT_EQ(read.name(ranges[0]), "aten::add");
  EXPECT_EQ(ranges[0].name, ranges[1].name);
  EXPECT_EQ(ranges[0].range, RangeSource::kOperator);
  EXPECT_EQ(read.name(ranges[2]), "Optimizer.step#SGD.step");
  EXPECT_EQ(ranges[2].range, RangeSource::kAnnotation);
  EXPECT_EQ(read.name(ranges[3]), "my, own range");
  EXPECT_EQ(ranges[3].range, RangeSource::kNvtx);
  EXPECT_TRUE(read.trace().info().torch);
}

TEST(NsysTrace, ProcessesAreRanksByTheirLowestDevice) {
  const ExportFile file;
  const_cast<ExportFile&>(file).sql(kTables).sql(call(1, 1, 0, 5, 200, 200) + kernel(1, 10, 20, 200, 0) +
                                                 call(1, 1, 0, 5, 150, 150) + call(1, 2, 5, 6, 150, 150) +
                                                 kernel(1, 12, 30, 150, 1) + kernel(2, 30, 31, 150, 2) +
                                                 call(1, 7, 1, 2, 50, 50));
  const ReadExport first{file};
  ASSERT_EQ(first.trace().processes().size(), 3u);
  EXPECT_EQ(first.trace().processes()[0].pid, 200);
  EXPECT_EQ(first.trace().processes()[1].pid, 150);
  EXPECT_EQ(first.trace().processes()[1].operations, 2u);
  EXPECT_EQ(first.trace().processes()[2].pid, 50);  // launches nothing
  EXPECT_EQ(first.one(RecordKind::kKernel).device, DeviceId{0});
  const ReadExport second{file, 1};
  const auto kernels = second.of_kind(RecordKind::kKernel);
  ASSERT_EQ(kernels.size(), 2u);  // the same correlation id as the other process's, and not mixed up
  EXPECT_EQ(kernels[0].device, DeviceId{1});
  EXPECT_EQ(kernels[1].device, DeviceId{2});
  EXPECT_EQ(second.of_kind(RecordKind::kApiCall).size(), 2u);
}

TEST(NsysTrace, TimeZeroIsTheSessionsStartPlusTheFirstRecord) {
  ExportFile file;
  file.sql(kTables).sql(call(1, 1, 5000, 5500)).sql(
      "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT);"
      "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1779782330176752435, '');");
  EXPECT_EQ(ReadExport{file}.trace().info().origin_unix_ns, "1779782330176757435");
  file.sql("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
           "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PARAM_TIME_SHIFT', '1000')");
  EXPECT_EQ(ReadExport{file}.trace().info().origin_unix_ns, "1779782330176756435");
  file.sql("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PARAM_TIME_NORMALIZE', 'true')");
  EXPECT_EQ(ReadExport{file}.trace().info().origin_unix_ns, "5000");
}

TEST(NsysTrace, HostDevicesAndWarningsAreTold) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      kernel(1, 0, 10, 100, 0) +
      "CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);"
      "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'node7');"
      "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, cuDevice INTEGER);"
      "INSERT INTO TARGET_INFO_GPU VALUES (2, 'H100', 2);"
      "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
      "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (2, 0, 100), (2, 0, 999);"
      "CREATE TABLE ENUM_DIAGNOSTIC_SEVERITY_LEVEL (id INTEGER, label TEXT);"
      "INSERT INTO ENUM_DIAGNOSTIC_SEVERITY_LEVEL VALUES (2, 'Information'), (3, 'Warning');"
      "CREATE TABLE DIAGNOSTIC_EVENT (severity INTEGER, text TEXT);"
      "INSERT INTO DIAGNOSTIC_EVENT VALUES (2, 'all is well'), (3, 'Not all CUDA events were collected.')")};
  const RecordedInfo& info = read.trace().info();
  EXPECT_EQ(info.host, "node7");
  ASSERT_EQ(info.devices.size(), 2u);
  EXPECT_EQ(info.devices[1].id, DeviceId{0});
  EXPECT_EQ(info.devices[1].name, "H100");
  EXPECT_EQ(info.devices[1].process, read.trace().processes()[0].id);
  EXPECT_TRUE(read.says("Not all CUDA events were collected."));
  EXPECT_FALSE(read.says("all is well"));
}

TEST(NsysTrace, TimeOfTheProfilersOwnIsNotTheJobs) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      call(1, 1, 0, 5) +
      "CREATE TABLE PROFILER_OVERHEAD (start INTEGER, \"end\" INTEGER, globalTid INTEGER, overheadType INTEGER);"
      "INSERT INTO PROFILER_OVERHEAD VALUES (10,20," + std::to_string(global_id(100, 104)) + ",3),"
      "(30,40," + std::to_string(global_id(100, 104)) + ",6)")};
  const Record own = read.one(RecordKind::kOwn);  // a buffer written out; loading a module is the job's
  EXPECT_EQ(own.interval(), between(10, 20));
  EXPECT_EQ(own.thread, ThreadId{104});
}

// A job that is recorded for a while: the device had not come to its last launches.
TEST(NsysTrace, LaunchesWhoseWorkCameAfterTheRecordingAreNoLoss) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(call(1, 1, 0, 5) + call(1, 2, 10, 15) + call(1, 3, 20, 25) +
                                                      call(1, 4, 30, 35) + kernel(1, 40, 50) + kernel(3, 50, 60))};
  const auto calls = read.of_kind(RecordKind::kApiCall);
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[1].api, ApiClass::kLaunch);  // lost: a later launch of the thread has its kernel
  EXPECT_EQ(calls[2].api, ApiClass::kLaunch);
  EXPECT_EQ(calls[3].api, ApiClass::kOther);
  EXPECT_TRUE(read.says("before the work of the last 1 launches"));
}

TEST(NsysTrace, ProgressEndsWithTheWholeFile) {
  ExportFile file;
  file.sql(kTables);
  std::string rows = "BEGIN;";
  for (int i = 1; i <= 25'000; ++i) rows += call(1, i, i * 100, i * 100 + 5);
  file.sql(rows + "COMMIT");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
  ASSERT_TRUE(read_nsys(file.path(), {.on_progress = [&](std::uint64_t read, std::uint64_t total) {
                                        seen.emplace_back(read, total);
                                      }}));
  const std::uint64_t bytes = std::filesystem::file_size(file.path());
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_NEAR(static_cast<double>(seen[0].first), 0.4 * static_cast<double>(bytes), 0.01 * static_cast<double>(bytes));
  EXPECT_EQ(seen.back(), std::pair(bytes, bytes));
}

}  // namespace
}  // namespace gpudiag::testing
