// SPDX-License-Identifier: Apache-2.0
// Exports that other people made of jobs on real GPUs: records and ledgers against sums that SQL makes
// of the same rows, with no code of the reader's.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "attribution/engine.hpp"
#include "sources/nsys_file/nsys_trace.hpp"
#include "sweep.hpp"
#include "traces_folder.hpp"

namespace gpudiag::golden {
namespace {

constexpr const char* kSource =
    "not run: no such export here. Put it into a folder and set GPUDIAG_TRACES to it; it comes from "
    "GindaChen/nsys-ai ab196ea2";

struct Kept final : RecordSink {
  std::vector<Record> records;
  void add(const Record& record) override {
    if (record.kind != RecordKind::kTick) records.push_back(record);
  }
};

struct Ledgers {
  std::int64_t wall = 0, compute = 0, communication = 0, copy = 0, idle = 0, communication_in_all = 0;
  std::vector<IterationLedger> all;
};

class RealExport : public ::testing::TestWithParam<std::tuple<const char*, std::size_t>> {
 protected:
  void SetUp() override {
    const std::filesystem::path path =
        traces_folder() / "nsys" / (std::string{std::get<0>(GetParam())} + ".sqlite");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " " << kSource;
    trace_ = std::make_unique<Result<RecordedTrace>>(read_nsys(path));
    ASSERT_TRUE(*trace_) << trace_->error().message;
    process_ = (*trace_)->processes().at(std::get<1>(GetParam()));
    ASSERT_EQ(sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    (*trace_)->deliver(process_.id, kept_);
  }
  void TearDown() override { sqlite3_close(database_); }

  /// The one number that a query gives. {} stands for the process, in the upper bits of the file's.
  std::int64_t sql(const std::string& query) const {
    sqlite3_stmt* row = nullptr;
    const std::string text = fmt::format(fmt::runtime(query), process_.pid);
    if (sqlite3_prepare_v2(database_, text.c_str(), -1, &row, nullptr) != SQLITE_OK)
      throw std::runtime_error{sqlite3_errmsg(database_) + (": " + text)};
    const std::int64_t value = sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 0) : -1;
    sqlite3_finalize(row);
    return value;
  }

  /// Time covered by the rows of a query for start and end.
  std::int64_t covered(const std::string& rows) const {
    return sql("WITH o AS (SELECT start, \"end\", max(\"end\") OVER (ORDER BY start, \"end\" ROWS BETWEEN UNBOUNDED "
               "PRECEDING AND 1 PRECEDING) AS before FROM (" + rows + ")) "
               "SELECT sum(max(0, \"end\" - max(start, coalesce(before, start)))) FROM o");
  }

  struct Sum {
    std::int64_t count = 0, length = 0, value = 0, correlation = 0;
  };
  Sum sum(RecordKind kind) const {
    Sum sum;
    for (const Record& record : kept_.records) {
      if (record.kind != kind) continue;
      ++sum.count;
      sum.length += record.end.ns - record.start.ns;
      sum.value += static_cast<std::int64_t>(record.value);
      sum.correlation += raw(record.correlation);
    }
    return sum;
  }

  Ledgers ledgers() const {
    Ledgers sums;
    Engine engine{{}, (*trace_)->names(), [&](const IterationLedger& ledger) {
                    sums.all.push_back(ledger);
                    sums.wall += ledger.wall.ns;
                    sums.compute += ledger.compute.ns;
                    sums.communication += ledger.communication.ns;
                    sums.copy += ledger.copy.ns;
                    sums.idle += ledger.idle.ns;
                    sums.communication_in_all += ledger.communication_total.ns;
                  }};
    (*trace_)->deliver(process_.id, engine);
    engine.finish();
    return sums;
  }

  std::unique_ptr<Result<RecordedTrace>> trace_;
  RecordedProcess process_;
  sqlite3* database_ = nullptr;
  Kept kept_;
};

const std::string kOf = " WHERE globalPid>>24 & 0xffffff = {}";
const std::string kOfThreads = " WHERE globalTid>>24 & 0xffffff = {}";
const std::string kNccl = "SELECT start, \"end\" FROM CUPTI_ACTIVITY_KIND_KERNEL" + kOf +
                          " AND shortName IN (SELECT id FROM StringIds WHERE value LIKE 'nccl%')";
const std::string kOther = "SELECT start, \"end\" FROM CUPTI_ACTIVITY_KIND_KERNEL" + kOf +
                           " AND shortName NOT IN (SELECT id FROM StringIds WHERE value LIKE 'nccl%')";
// What SQL's `{}` stands for is put in once for each table.
const std::string kAll = "SELECT start, \"end\" FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE globalPid>>24 & 0xffffff = {0} "
                         "UNION ALL SELECT start, \"end\" FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE globalPid>>24 & 0xffffff = {0} "
                         "UNION ALL SELECT start, \"end\" FROM CUPTI_ACTIVITY_KIND_MEMSET WHERE globalPid>>24 & 0xffffff = {0}";

TEST_P(RealExport, EachRowIsARecord) {
  const auto same = [&](RecordKind kind, const std::string& table, const std::string& of, const std::string& value) {
    const Sum ours = sum(kind);
    EXPECT_EQ(ours.count, sql("SELECT count(*) FROM " + table + of)) << table;
    EXPECT_EQ(ours.length, sql("SELECT sum(\"end\" - start) FROM " + table + of)) << table;
    if (value != "shape") {
      EXPECT_EQ(ours.value, sql("SELECT sum(" + value + ") FROM " + table + of)) << table;
    }
    if (kind != RecordKind::kRange) {
      EXPECT_EQ(ours.correlation, sql("SELECT sum(correlationId) FROM " + table + of)) << table;
    }
  };
  same(RecordKind::kKernel, "CUPTI_ACTIVITY_KIND_KERNEL", kOf, "shape");
  same(RecordKind::kMemcpy, "CUPTI_ACTIVITY_KIND_MEMCPY", kOf, "bytes");
  same(RecordKind::kMemset, "CUPTI_ACTIVITY_KIND_MEMSET", kOf, "bytes");
  same(RecordKind::kApiCall, "CUPTI_ACTIVITY_KIND_RUNTIME", kOfThreads, "0");
  same(RecordKind::kSync, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", kOf,
       "CASE eventId WHEN 4294967295 THEN 0 ELSE eventId END");
  same(RecordKind::kRange, "NVTX_EVENTS", kOfThreads, "0");
  EXPECT_EQ((*trace_)->quality().total(), 0u);
}

TEST_P(RealExport, TheFirstRecordIsAtTheFilesEarliestTime) {
  const std::int64_t earliest = sql(
      "SELECT min(start) FROM (SELECT start FROM CUPTI_ACTIVITY_KIND_RUNTIME UNION ALL SELECT start FROM "
      "CUPTI_ACTIVITY_KIND_KERNEL UNION ALL SELECT start FROM NVTX_EVENTS UNION ALL SELECT start FROM "
      "CUPTI_ACTIVITY_KIND_MEMCPY UNION ALL SELECT start FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)");
  EXPECT_EQ((*trace_)->info().origin_unix_ns,
            std::to_string(sql("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME") + earliest));
}

TEST_P(RealExport, TheLedgerIsWhatSqlMakesOfTheRows) {
  const Ledgers got = ledgers();
  EXPECT_EQ(got.wall, sql("SELECT max(\"end\") - min(start) FROM (" + kAll + ")"));
  EXPECT_EQ(got.compute, covered(kOther));
  EXPECT_EQ(got.communication_in_all, covered(kNccl));
  EXPECT_EQ(got.wall - got.idle, covered(kAll));
}

TEST_P(RealExport, BusyTimesEqualAnIndependentSweep) {
  const DeviceId device{static_cast<std::uint32_t>(std::get<1>(GetParam()))};
  const SweptTimes swept = sweep(kept_.records, device, (*trace_)->names());
  const Ledgers got = ledgers();
  EXPECT_EQ(got.wall, swept.wall);
  EXPECT_EQ(got.compute, swept.compute);
  EXPECT_EQ(got.communication, swept.communication);
  EXPECT_EQ(got.copy, swept.copy);
  EXPECT_EQ(got.idle, swept.idle);
}

TEST_P(RealExport, TheIdentityHoldsAndNothingIsInvalid) {
  const Ledgers got = ledgers();
  ASSERT_FALSE(got.all.empty());
  for (const IterationLedger& ledger : got.all) {
    DurationNs idle;
    for (const DurationNs part : ledger.idle_by_cause) idle += part;
    EXPECT_EQ(idle, ledger.idle) << ledger.label;
    EXPECT_EQ(ledger.wall, ledger.compute + ledger.communication + ledger.copy + ledger.idle) << ledger.label;
    EXPECT_EQ(ledger.invalid, IterationLedger{}.invalid) << ledger.label;
  }
}

// The file says device 0 of the waits of both processes.
TEST_P(RealExport, WaitsAreOnTheDeviceOfTheirProcess) {
  const DeviceId device{static_cast<std::uint32_t>(std::get<1>(GetParam()))};
  for (const Record& record : kept_.records)
    if (record.kind == RecordKind::kSync) {
      ASSERT_EQ(record.device, device);
    }
}

// 19 thousand ranges differ in the numbers that PyTorch puts behind their names.
TEST_P(RealExport, OperatorsAreFewNames) {
  std::map<NameId, int> names;
  std::int64_t operators = 0;
  for (const Record& record : kept_.records)
    if (record.kind == RecordKind::kRange && record.range == RangeSource::kOperator) {
      ++names[record.name];
      ++operators;
    }
  EXPECT_EQ(operators, sql("SELECT count(*) FROM NVTX_EVENTS" + kOfThreads + " AND text LIKE '%op_id = %' AND "
                           "text NOT LIKE '%#%'"));
  EXPECT_LT(names.size(), 120u);
}

INSTANTIATE_TEST_SUITE_P(All, RealExport,
                         ::testing::Combine(::testing::Values("two_gpu_before", "two_gpu_after"),
                                            ::testing::Values(std::size_t{0}, std::size_t{1})),
                         [](const auto& param) {
                           return fmt::format("{}_process_{}", std::get<0>(param.param), std::get<1>(param.param));
                         });

}  // namespace
}  // namespace gpudiag::golden
