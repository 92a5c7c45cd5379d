// SPDX-License-Identifier: Apache-2.0
// A small export of Nsight Systems, made row by row; gone when the test is.
#pragma once

#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "record/sink.hpp"
#include "sources/nsys_file/nsys_trace.hpp"
#include "unit/sources/recorded/read_records.hpp"

namespace gpudiag::testing {

/// As rows refer to threads and processes: machine 1, process, thread.
constexpr std::int64_t global_id(std::int64_t pid, std::int64_t tid = 0) {
  return (std::int64_t{1} << 48) | pid << 24 | tid;
}

class ExportFile {
 public:
  ExportFile() {
    std::string name = (std::filesystem::temp_directory_path() / "gpudiag-export-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    if (descriptor < 0) throw std::runtime_error{"cannot make a file in the temporary folder"};
    close(descriptor);
    path_ = name;
    if (sqlite3_open(name.c_str(), &database_) != SQLITE_OK) throw std::runtime_error{"cannot make a database"};
    sql("PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY");
  }
  ExportFile(const ExportFile&) = delete;
  ExportFile& operator=(const ExportFile&) = delete;
  ~ExportFile() {
    sqlite3_close(database_);
    std::filesystem::remove(path_);
  }

  ExportFile& sql(const std::string& statements) {
    char* message = nullptr;
    if (sqlite3_exec(database_, statements.c_str(), nullptr, nullptr, &message) != SQLITE_OK) {
      const std::string text = message;
      sqlite3_free(message);
      throw std::runtime_error{text + ": " + statements};
    }
    return *this;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  sqlite3* database_ = nullptr;
  std::filesystem::path path_;
};

/// The columns that the reader looks for, in another order than Nsight Systems writes them.
inline constexpr const char* kTables = R"sql(
  CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (nameId INTEGER, globalTid INTEGER, "end" INTEGER, start INTEGER,
    correlationId INTEGER, returnValue INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (globalPid INTEGER, correlationId INTEGER, streamId INTEGER,
    contextId INTEGER, deviceId INTEGER, "end" INTEGER, start INTEGER, shortName INTEGER, demangledName INTEGER,
    gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
    graphNodeId INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER,
    dstKind INTEGER, srcDeviceId INTEGER, dstDeviceId INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, "end" INTEGER, deviceId INTEGER,
    contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER,
    eventId INTEGER, eventSyncId INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INTEGER, contextId INTEGER, streamId INTEGER,
    correlationId INTEGER, globalPid INTEGER, eventId INTEGER, eventSyncId INTEGER);
  CREATE TABLE NVTX_EVENTS (start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, textId INTEGER,
    globalTid INTEGER, domainId INTEGER, jsonText TEXT, binaryData BLOB);
  INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'gemm(float*)'), (3, 'gemm'),
    (4, 'cudaEventRecord_v3020'), (5, 'cudaStreamWaitEvent_v3020'), (6, 'cudaStreamSynchronize_v3020'),
    (7, 'load'), (8, 'cuLaunchKernelEx'), (9, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'),
    (10, 'ncclDevKernel_SendRecv'), (11, 'cudaGraphLaunch_v10000');
)sql";

/// A row each, of process 100; see kTables.
inline std::string call(int name, std::int64_t correlation, std::int64_t start, std::int64_t end,
                        std::int64_t pid = 100, std::int64_t tid = 100, int result = 0) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(name) + ',' +
         std::to_string(global_id(pid, tid)) + ',' + std::to_string(end) + ',' + std::to_string(start) + ',' +
         std::to_string(correlation) + ',' + std::to_string(result) + ");";
}
inline std::string kernel(std::int64_t correlation, std::int64_t start, std::int64_t end, std::int64_t pid = 100,
                          int device = 0, int name = 2, std::int64_t node = 0) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(global_id(pid)) + ',' +
         std::to_string(correlation) + ",7,1," + std::to_string(device) + ',' + std::to_string(end) + ',' +
         std::to_string(start) + ",3," + std::to_string(name) + ",13,2,1,256,1,1," + std::to_string(node) + ");";
}
inline std::string range(std::string_view text, std::int64_t start, std::int64_t end, std::int64_t pid = 100,
                         std::string_view json = {}) {
  return "INSERT INTO NVTX_EVENTS(start,\"end\",eventType,text,globalTid,jsonText) VALUES (" +
         std::to_string(start) + ',' + std::to_string(end) + ",59,'" + std::string{text} + "'," +
         std::to_string(global_id(pid, pid)) + ",'" + std::string{json} + "');";
}

/// Reads an export and keeps the records of its first process.
class ReadExport : public ReadRecords {
 public:
  explicit ReadExport(const ExportFile& file, std::size_t process = 0) : ReadRecords{read_nsys(file.path()), process} {}

  /// Whether the reader says that something of this text is not known.
  bool says(std::string_view text) const {
    for (const std::string& sentence : trace().info().unknown)
      if (sentence.find(text) != std::string::npos) return true;
    return false;
  }
};

}  // namespace gpudiag::testing
