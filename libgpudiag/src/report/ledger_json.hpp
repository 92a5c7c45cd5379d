// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// Ledgers as JSON: the lines of `gpudiag.iteration/1` and the objects in `gpudiag.report/1`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "attribution/ledger_sum.hpp"
#include "report/json_writer.hpp"
#include "timeline/quality.hpp"

namespace gpudiag {

inline constexpr std::string_view kIterationSchema = "gpudiag.iteration/1";

inline constexpr std::array<std::string_view, 6> kMarkSourceNames{
    "step", "profiler_step", "pattern", "optimizer", "launch_pattern", "window"};
inline constexpr std::array<std::string_view, 3> kGradeNames{"good", "fair", "poor"};

constexpr std::string_view name_of(MarkSource source) {
  return kMarkSourceNames[static_cast<std::size_t>(source)];
}
constexpr std::string_view name_of(Grade grade) {
  return kGradeNames[static_cast<std::size_t>(grade)];
}

/// One line of a run's JSONL, without the line end: the iteration with schema, rank and device.
std::string iteration_json(const IterationLedger& ledger, std::uint32_t rank);

/// The iteration as it stands in a report, where rank and device are said around it.
void write_iteration(JsonWriter& json, const IterationLedger& ledger);

/// `all` and `steady` of a report.
void write_sum(JsonWriter& json, const LedgerSum& sum);

/// {"grade", "records", "defects": {each defect}}.
void write_quality(JsonWriter& json, const Quality& quality);

}  // namespace gpudiag
