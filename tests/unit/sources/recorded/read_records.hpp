// SPDX-License-Identifier: Apache-2.0
// What a reader of files made of one process, as the tests of every reader ask for it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "record/result.hpp"
#include "record/sink.hpp"
#include "sources/recorded/recorded_trace.hpp"

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

class ReadRecords {
 public:
  const RecordedTrace& trace() const { return trace_; }
  const std::vector<Record>& records() const { return collected_.records; }
  const std::vector<TimePoint>& ticks() const { return collected_.ticks; }
  std::string_view name(const Record& record) const { return trace_.names().text(record.name); }
  std::uint64_t defects(Defect defect) const { return trace_.quality()[defect]; }

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

 protected:
  explicit ReadRecords(Result<RecordedTrace> trace, std::size_t process = 0) : trace_{taken(std::move(trace))} {
    trace_.deliver(trace_.processes().at(process).id, collected_);
  }

 private:
  static RecordedTrace taken(Result<RecordedTrace> trace) {
    if (!trace) throw std::runtime_error{trace.error().message};
    return std::move(*trace);
  }

  RecordedTrace trace_;
  Collected collected_;
};

}  // namespace gpudiag::testing
