// SPDX-License-Identifier: Apache-2.0
// Any bytes as an export of Nsight Systems, through reader, sanitizer and engine. What begins like a
// database is taken for the file itself; other bytes are values of cells in a database that is whole,
// for SQLite would refuse nearly all files that are not.
#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "checks.hpp"
#include "sources/nsys_file/nsys_trace.hpp"

namespace {

using namespace gpudiag;

/// Each with the number of its columns; all of them may hold anything.
struct Table {
  const char* name;
  const char* columns;
};
constexpr Table kTables[] = {
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "start,\"end\",globalTid,correlationId,nameId,returnValue"},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     "start,\"end\",globalPid,correlationId,deviceId,contextId,streamId,demangledName,gridX,gridY,gridZ,blockX,blockY,"
     "blockZ,graphNodeId"},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "start,\"end\",globalPid,correlationId,deviceId,contextId,streamId,bytes,copyKind,srcKind,srcDeviceId,dstDeviceId"},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     "start,\"end\",globalPid,correlationId,contextId,streamId,syncType,eventId,eventSyncId"},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT", "globalPid,correlationId,contextId,streamId,eventId,eventSyncId"},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start,\"end\",globalPid,correlationId,deviceId,streamId,graphId"},
    {"NVTX_EVENTS", "start,\"end\",globalTid,eventType,text,textId,jsonText,binaryData"},
    {"NVTX_PAYLOAD_SCHEMA_ENTRIES", "domainId,schemaId,type,name,\"offset\""},
    {"TARGET_INFO_SESSION_START_TIME", "utcEpochNs"},
};
constexpr std::size_t kRows = 400;  // more take long and find no more

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : rest_{reinterpret_cast<const char*>(data), size} {}
  bool empty() const { return rest_.empty(); }
  std::string_view take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::uint8_t byte() {
    const std::string_view one = take(1);
    return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one[0]);
  }

 private:
  std::string_view rest_;
};

/// Mostly small numbers, so that ids meet one another.
void bind(sqlite3_stmt* row, int at, Bytes& bytes) {
  const std::uint8_t kind = bytes.byte();
  if (kind < 200) {
    sqlite3_bind_int64(row, at, std::int64_t{kind} % 16 * (kind < 100 ? 1 : 1000));
  } else if (kind < 220) {
    std::int64_t value = 0;
    const std::string_view taken = bytes.take(8);
    std::memcpy(&value, taken.data(), taken.size());
    sqlite3_bind_int64(row, at, value);
  } else if (kind < 240) {
    const std::string_view text = bytes.take(kind - 220u);
    sqlite3_bind_text(row, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  } else if (kind < 250) {
    const std::string_view blob = bytes.take(kind - 200u);
    sqlite3_bind_blob(row, at, blob.data(), static_cast<int>(blob.size()), SQLITE_TRANSIENT);
  }
}

sqlite3* database_of(Bytes bytes) {
  sqlite3* database = nullptr;
  fuzz::require(sqlite3_open(":memory:", &database) == SQLITE_OK, "a database can be made");
  sqlite3_exec(database,
               "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
               "INSERT INTO StringIds VALUES (1,'cudaLaunchKernel_v7000'),(2,'gemm'),(3,'cudaStreamSynchronize'),"
               "(4,'ncclDevKernel_SendRecv'),(5,'ncclSend'),(6,'ncclGroupStart'),(7,'ncclGroupEnd'),"
               "(8,'ProfilerStep#1'),(9,'cudaEventRecord'),(10,'cudaStreamWaitEvent'),(11,'cudaGraphLaunch')",
               nullptr, nullptr, nullptr);
  for (const Table& table : kTables)
    sqlite3_exec(database, fmt::format("CREATE TABLE {} ({})", table.name, table.columns).c_str(), nullptr, nullptr,
                 nullptr);
  for (std::size_t i = 0; i < kRows && !bytes.empty(); ++i) {
    const Table& table = kTables[bytes.byte() % std::size(kTables)];
    const auto columns = 1 + std::ranges::count(std::string_view{table.columns}, ',');
    std::string values = "?";
    for (int c = 1; c < columns; ++c) values += ",?";
    sqlite3_stmt* row = nullptr;
    sqlite3_prepare_v2(database, fmt::format("INSERT INTO {} VALUES ({})", table.name, values).c_str(), -1, &row, nullptr);
    for (int c = 1; c <= columns; ++c) bind(row, c, bytes);
    sqlite3_step(row);
    sqlite3_finalize(row);
  }
  return database;
}

void read_and_check(const void* data, std::size_t size) {
  if (const auto trace = read_nsys(fuzz::file_with(data, size))) fuzz::check(*trace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kMagic = "SQLite format 3";
  if (size >= kMagic.size() && std::memcmp(data, kMagic.data(), kMagic.size()) == 0) {
    read_and_check(data, size);
    return 0;
  }
  sqlite3* database = database_of({data, size});
  sqlite3_int64 bytes = 0;
  unsigned char* file = sqlite3_serialize(database, "main", &bytes, 0);
  read_and_check(file, static_cast<std::size_t>(bytes));
  sqlite3_free(file);
  sqlite3_close(database);
  return 0;
}
