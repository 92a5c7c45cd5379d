// SPDX-License-Identifier: Apache-2.0
// Reads a literal trace and keeps the records of its main process.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sources/kineto_file/kineto_trace.hpp"
#include "trace_file.hpp"

namespace gpudiag::testing {

struct Collected final : RecordSink {
  std::vector<Record> records;  ///< without ticks
  std::vector<TimePoint> ticks;

  void add(const Record& record) override {
    if (record.kind == RecordKind::kTick)
      ticks.push_back(record.start);
    else
      records.push_back(record);
  }
};

class ReadTrace {
 public:
  explicit ReadTrace(std::string_view content) : trace_{read(content)} {
    trace_->deliver(trace_->processes().front().id, collected_);
  }

  const RecordedTrace& trace() const { return *trace_; }
  const std::vector<Record>& records() const { return collected_.records; }
  const std::vector<TimePoint>& ticks() const { return collected_.ticks; }
  std::string_view name(const Record& record) const { return trace_->names().text(record.name); }
  std::uint64_t defects(Defect defect) const { return trace_->quality()[defect]; }

  std::vector<Record> of_kind(RecordKind kind) const {
    std::vector<Record> found;
    for (const Record& record : collected_.records)
      if (record.kind == kind) found.push_back(record);
    return found;
  }
  /// The one record of this kind; a test that has another number of them fails.
  Record one(RecordKind kind) const {
    const std::vector<Record> found = of_kind(kind);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Record{} : found.front();
  }

 private:
  static RecordedTrace read(std::string_view content) {
    const TraceFile file{content};
    auto trace = read_kineto(file.path());
    if (!trace) throw std::runtime_error{trace.error().message};
    return std::move(*trace);
  }

  std::optional<RecordedTrace> trace_;
  Collected collected_;
};

/// A launch and its kernel, most tests' smallest trace: events without brackets.
inline const std::string kLaunchAndKernel = R"json(
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100,
   "ts": 1000.000, "dur": 5.5, "args": {"External id": 77, "cbid": 211, "correlation": 42}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 1, "tid": 7, "ts": 1010.250, "dur": 20.125,
   "args": {"External id": 77, "device": 1, "context": 3, "stream": 7, "correlation": 42,
            "grid": [13, 2, 1], "block": [256, 1, 1]}})json";

}  // namespace gpudiag::testing
