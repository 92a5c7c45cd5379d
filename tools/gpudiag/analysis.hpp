// SPDX-License-Identifier: Apache-2.0
// Flow: [gpudiag analyze]: paths -> files -> ranks -> report.
// Reads files one after another, compares the ranks that belong together, and hands each to the
// reporters. What waits for the comparison is the ranks' summaries; ledgers lie in files meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/findings.hpp"
#include "attribution/ranks/rank_recorder.hpp"
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
  std::size_t ranks() const { return waiting_.size(); }

 private:
  ReadOptions read_options();
  std::optional<Error> add_trace(const std::filesystem::path& path, const Result<RecordedTrace>& trace);
  std::optional<Error> add_recording(const std::filesystem::path& path);
  std::optional<Error> add_summary(const std::filesystem::path& path);
  std::optional<Error> add_run_lines(const std::filesystem::path& path);
  EngineOptions engine_options() const;
  std::uint32_t free_rank(std::uint32_t wanted);
  /// `claims`: the file says which rank it is, and did not only get a number. `together`: files with the
  /// same text belong together whatever their collectives say.
  void hand_over(RankCollector&& rank, std::vector<RankSummary> summaries, bool claims = true, std::string together = {});
  void share_waits(const std::vector<JobReport>& jobs);
  std::vector<std::vector<std::size_t>> group_ranks(const std::vector<JobReport>& jobs) const;
  Diagnosis diagnose_groups(const std::vector<JobReport>& jobs);
  std::size_t memory_limit() const;

  std::vector<Reporter*> reporters_;
  AnalysisOptions options_;
  Progress& progress_;
  /// A rank that has been read, until all have.
  struct Waiting {
    std::unique_ptr<RankCollector> rank;
    std::vector<std::size_t> summaries;  ///< in summaries_, one for each device that communicates
    std::string together;
  };
  std::vector<Waiting> waiting_;
  std::vector<RankSummary> summaries_;
  std::set<std::uint32_t> ranks_seen_;
  std::uint64_t iterations_ = 0;
};

}  // namespace gpudiag::tool
