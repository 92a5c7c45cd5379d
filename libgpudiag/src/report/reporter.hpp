// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// What every form of report has in common. Ranks are handed over one after another and forgotten, so
// that a report of a thousand ranks takes the memory of one.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "attribution/findings.hpp"
#include "attribution/ranks/job_report.hpp"
#include "report/rank_collector.hpp"

namespace gpudiag {

/// Where a report goes, piece by piece.
using Write = std::function<void(std::string_view)>;

/// The verdict where several jobs were read, which have their own.
inline constexpr std::string_view kSeveralJobs = "several_jobs";

/// Calls: begin(), rank() for each rank in rising order, jobs() where ranks were compared, part() for each
/// job where there are several, end(). Not thread-safe.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void begin() {}
  /// `rank` is closed.
  virtual void rank(const RankCollector& rank) = 0;
  /// The one with most operations first.
  virtual void jobs(std::span<const JobReport>) {}
  /// Of ranks that belong together, where there are several jobs; end() has the findings of all.
  virtual void part(std::string_view whom, const Diagnosis& diagnosis) {
    static_cast<void>(whom);
    static_cast<void>(diagnosis);
  }
  virtual void end(const Diagnosis& diagnosis) = 0;
};

/// `gpudiag.report/1`.
std::unique_ptr<Reporter> make_json_reporter(Write write);
/// The lines a live run writes: `gpudiag.session/1` and `gpudiag.iteration/1`.
std::unique_ptr<Reporter> make_json_lines_reporter(Write write);

struct TextOptions {
  std::size_t columns = 100;  ///< of the terminal; longer texts are wrapped
  bool iterations = false;    ///< a line for each iteration, as in the job's log
  std::size_t ranks = 16;     ///< of more, the others are left to the comparison of ranks
};
/// For people: shares with bars, findings with evidence and advice, quality.
std::unique_ptr<Reporter> make_text_reporter(Write write, TextOptions options);

}  // namespace gpudiag
