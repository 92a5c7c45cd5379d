// SPDX-License-Identifier: Apache-2.0
// Flow: [gpudiag analyze]: paths -> files -> ranks -> report.
// Reads files one after another and hands each rank to the reporters, so that memory does not grow
// with the number of ranks.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/findings.hpp"
#include "input_file.hpp"
#include "progress.hpp"
#include "report/reporter.hpp"
#include "sources/recorded/recorded_trace.hpp"

namespace gpudiag::tool {

/// What the user sets for traces and recordings; lines of a run hold finished ledgers.
struct AnalysisOptions {
  std::vector<std::string> range_rules;
  std::string iteration_pattern;
};

class Analysis {
 public:
  /// `reporters` and `progress` must outlive it.
  Analysis(std::vector<Reporter*> reporters, AnalysisOptions options, Progress& progress);

  /// Says why where nothing could be read of it.
  std::optional<Error> add(const InputFile& file);
  /// Finds the verdict and closes the reports.
  Diagnosis end();

  std::uint64_t iterations() const { return iterations_; }
  std::size_t ranks() const { return bases_.size(); }

 private:
  ReadOptions read_options();
  std::optional<Error> add_trace(const std::filesystem::path& path, const Result<RecordedTrace>& trace);
  std::optional<Error> add_recording(const std::filesystem::path& path);
  std::optional<Error> add_run_lines(const std::filesystem::path& path);
  EngineOptions engine_options() const;
  std::uint32_t free_rank(std::uint32_t wanted);
  /// `claims`: the file says which rank it is, and did not only get a number.
  void hand_over(RankCollector& rank, bool claims = true);

  std::vector<Reporter*> reporters_;
  AnalysisOptions options_;
  Progress& progress_;
  std::vector<RankBasis> bases_;
  std::set<std::uint32_t> ranks_seen_;
  std::uint64_t iterations_ = 0;
};

}  // namespace gpudiag::tool
