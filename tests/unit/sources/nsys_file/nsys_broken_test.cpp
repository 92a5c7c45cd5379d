// SPDX-License-Identifier: Apache-2.0
// What is wrong with a file costs what it is wrong with, is counted, and never more.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "export_file.hpp"
#include "sources/nsys_file/nsys_trace.hpp"

namespace gpudiag::testing {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

std::string message_of(const std::filesystem::path& path) {
  const auto trace = read_nsys(path);
  return trace ? "" : trace.error().message;
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream{path, std::ios::binary | std::ios::trunc}.write(bytes.data(),
                                                                static_cast<std::streamsize>(bytes.size()));
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(NsysBroken, WhatIsNoDatabaseIsSaidToBeNone) {
  const ExportFile file;
  write(file.path(), "SQLite format 3");
  EXPECT_NE(message_of(file.path()).find("cannot be read"), std::string::npos) << message_of(file.path());
  EXPECT_NE(message_of("/nowhere/report.sqlite").find("cannot be opened"), std::string::npos);
}

TEST(NsysBroken, AnotherDatabaseIsNoExport) {
  const std::string said = message_of(ExportFile{}.sql("CREATE TABLE songs (title TEXT)").path());
  EXPECT_NE(said.find("no export of Nsight Systems"), std::string::npos) << said;
}

TEST(NsysBroken, EmptyTablesAreAnEmptyTrace) {
  const ReadExport read{ExportFile{}.sql(kTables)};
  EXPECT_TRUE(read.records().empty());
  ASSERT_EQ(read.trace().processes().size(), 1u);
  EXPECT_EQ(read.trace().quality().total(), 0u);
  EXPECT_TRUE(read.says("CUPTI_ACTIVITY_KIND_KERNEL is empty"));
  EXPECT_TRUE(read.says("TARGET_INFO_SESSION_START_TIME is absent"));
}

TEST(NsysBroken, AColumnThatIsAbsentIsNamedWithWhatItWouldTell) {
  const ReadExport read{ExportFile{}.sql(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (\"end\" INTEGER, start INTEGER, deviceId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 10, 1)")};
  const Record kernel = read.one(RecordKind::kKernel);
  EXPECT_EQ(kernel.device, DeviceId{1});
  EXPECT_EQ(kernel.correlation, kNoCorrelation);
  EXPECT_EQ(kernel.stream, kNoStream);
  EXPECT_EQ(kernel.value, 0u);
  EXPECT_TRUE(read.says("CUPTI_ACTIVITY_KIND_KERNEL has no column correlationId: which call launched an operation is "
                        "not known"));
  EXPECT_FALSE(read.says("has no column deviceId"));
}

TEST(NsysBroken, NullsCostTheirRowOrTheirField) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      kernel(1, 10, 20) +
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start,\"end\") VALUES (NULL, 30), (30, NULL), ('soon', 40);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME(start,\"end\") VALUES (5, 6);"
      "INSERT INTO NVTX_EVENTS(start) VALUES (7)")};
  EXPECT_EQ(read.defects(Defect::kBrokenEvent), 4u);  // two kernels without a start, a call and a range of nobody
  const auto kernels = read.of_kind(RecordKind::kKernel);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_TRUE(kernels[1].has(record_flag::kIncomplete));
  EXPECT_EQ(kernels[1].name, kNoName);
  EXPECT_EQ(read.defects(Defect::kRepairedText), 1u);
}

TEST(NsysBroken, TimesThatContradictEachOtherAreMarked) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      call(1, 1, 1000, 1010) + call(1, 2, 1020, 1030) + call(1, 3, 1040, 1050) + call(1, 4, 1060, 1070) +
      kernel(1, 1100, 1200) + kernel(2, 1300, 1250) + kernel(3, 0, 0) + kernel(4, -5000, -4000))};
  std::size_t negative = 0;
  std::size_t untimed = 0;
  for (const Record& record : read.of_kind(RecordKind::kKernel)) {
    negative += record.has(record_flag::kNegative) ? 1 : 0;
    untimed += record.has(record_flag::kUntimed) ? 1 : 0;
  }
  EXPECT_EQ(negative, 1u);
  EXPECT_EQ(untimed, 1u);
}

TEST(NsysBroken, HugeNumbersNeitherOverflowNorMoveTheOthers) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      call(1, 1, 1000, 1010) + call(1, 2, 1020, 1030) + kernel(1, 1100, 1200) + kernel(kMost, kMost, kLeast) + call(1, kLeast, kMost, kMost) +
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start,\"end\",deviceId,streamId) VALUES (9223372036854775807,1e300,1e18,-1);" +
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1100,1150,0,1,7,1,281476654432256,-7,1,0,2,NULL,NULL)")};
  for (const Record& record : read.records()) EXPECT_LE(record.start, record.end);
  EXPECT_EQ(read.of_kind(RecordKind::kApiCall).front().start, TimePoint{0});
  EXPECT_EQ(read.one(RecordKind::kMemcpy).value, 0u);
}

TEST(NsysBroken, NumbersOfTextsThatAreNotThereAreCounted) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      "INSERT INTO StringIds VALUES (50, NULL), (51, CAST(x'ff41' AS TEXT));"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start,\"end\",demangledName,shortName) VALUES (1,2,998,999),(2,3,50,NULL),(3,4,51,3);" +
      call(997, 5, 10, 20))};
  EXPECT_EQ(read.defects(Defect::kRepairedText), 4u);
  const auto kernels = read.of_kind(RecordKind::kKernel);
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].name, kNoName);
  EXPECT_EQ(read.name(kernels[2]), "\xEF\xBF\xBD" "A");
  EXPECT_EQ(read.one(RecordKind::kApiCall).api, ApiClass::kOther);
}

TEST(NsysBroken, OneCorrelationIdForTwoCallsIsKeptForBoth) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(call(1, 7, 10, 20) + call(1, 7, 30, 40) + kernel(7, 25, 28) +
                                                      kernel(7, 45, 48))};
  EXPECT_EQ(read.of_kind(RecordKind::kApiCall).size(), 2u);
  EXPECT_EQ(read.of_kind(RecordKind::kKernel).size(), 2u);
}

TEST(NsysBroken, AnEventWithoutItsCallIsCounted) {
  const ReadExport read{ExportFile{}.sql(kTables).sql(
      call(4, 1, 10, 20) +
      "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0,1,7,1,281476654432256,77,5),"
      "(0,1,7,99,281476654432256,78,6),(0,1,7,NULL,281476654432256,79,7)")};
  EXPECT_EQ(read.of_kind(RecordKind::kEventRecord).size(), 1u);
  EXPECT_EQ(read.defects(Defect::kBrokenEvent), 2u);
}

TEST(NsysBroken, AViewIsNoTable) {
  const ReadExport read{ExportFile{}.sql(
      "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
      "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '5.1.0');"
      "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) "
      "SELECT i AS start, i+1 AS \"end\" FROM n")};
  EXPECT_TRUE(read.records().empty());
  EXPECT_TRUE(read.says("CUPTI_ACTIVITY_KIND_KERNEL is absent"));
  EXPECT_TRUE(read.says("the export's schema is 5.1.0"));
}

TEST(NsysBroken, TextsWithoutAKeyAreFoundAllTheSame) {
  const ReadExport read{ExportFile{}.sql(
      "CREATE TABLE StringIds (id INTEGER, value TEXT);"
      "INSERT INTO StringIds VALUES (9, 'gemm');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, \"end\" INTEGER, shortName INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 9)")};
  EXPECT_EQ(read.name(read.one(RecordKind::kKernel)), "gemm");
}

/// A file of some ninety pages.
std::string large_export() {
  ExportFile file;
  file.sql(kTables);
  std::string rows = "BEGIN;";
  for (int i = 1; i <= 2000; ++i) rows += call(1, i, i * 100, i * 100 + 5) + kernel(i, i * 100 + 10, i * 100 + 60);
  file.sql(rows + "COMMIT");
  return bytes_of(file.path());
}

TEST(NsysBroken, AFileCutAnywhereGivesWhatIsThereAndSaysSo) {
  const std::string whole = large_export();
  const ExportFile file;
  std::size_t read = 0;
  for (std::size_t size = 4096; size < whole.size(); size += 7 * 1024) {
    write(file.path(), whole.substr(0, size));
    const auto trace = read_nsys(file.path());
    if (!trace) continue;
    ++read;
    EXPECT_EQ(trace->quality()[Defect::kTruncated], 1u) << size;
  }
  EXPECT_GT(read, 3u);
}

TEST(NsysBroken, DamagedBytesNeverCrash) {
  const std::string whole = large_export();
  std::mt19937 random{7};
  const ExportFile file;
  for (int round = 0; round < 60; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 20; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    write(file.path(), bytes);
    if (const auto trace = read_nsys(file.path())) {
      Collected sink;
      for (const RecordedProcess& process : trace->processes()) trace->deliver(process.id, sink);
      for (const Record& record : sink.records) ASSERT_LE(record.start, record.end);
    }
  }
}

}  // namespace
}  // namespace gpudiag::testing
