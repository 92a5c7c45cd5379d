// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// What every form of report has in common. Ranks are handed over one after another and forgotten, so
// that a report of a thousand ranks takes the memory of one.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "attribution/findings.hpp"
#include "report/rank_collector.hpp"

namespace gpudiag {

/// Where a report goes, piece by piece.
using Write = std::function<void(std::string_view)>;

/// Calls: begin(), rank() for each rank in rising order, end(). Not thread-safe.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void begin() {}
  /// `rank` is closed.
  virtual void rank(const RankCollector& rank) = 0;
  virtual void end(const Diagnosis& diagnosis) = 0;
};

/// `gpudiag.report/1`.
std::unique_ptr<Reporter> make_json_reporter(Write write);
/// The lines a live run writes: `gpudiag.session/1` and `gpudiag.iteration/1`.
std::unique_ptr<Reporter> make_json_lines_reporter(Write write);

struct TextOptions {
  std::size_t columns = 100;  ///< of the terminal; longer texts are wrapped
  bool iterations = false;    ///< a line for each iteration, as in the job's log
};
/// For people: shares with bars, findings with evidence and advice, quality.
std::unique_ptr<Reporter> make_text_reporter(Write write, TextOptions options);

}  // namespace gpudiag
