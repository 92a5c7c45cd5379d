// SPDX-License-Identifier: Apache-2.0
// Flow: [gpudiag analyze]: paths -> files -> ranks -> report.
// Reads back the lines that a live run wrote: iterations and what was said of the session.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "report/rank_collector.hpp"

namespace gpudiag::tool {

/// Feeds one file's lines to a collector. A line that cannot be read costs itself alone.
class RunLines {
 public:
  explicit RunLines(RankCollector& collector);
  ~RunLines();

  /// `line` without its end. `last`: the file ends here without a line end, as a killed job leaves it.
  void add(std::string_view line, bool last);
  /// After the last line.
  void finish();

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
  RankCollector& collector_;
  Quality quality_;
  std::uint64_t broken_ = 0;
  std::uint64_t truncated_ = 0;
  bool ended_ = false;
};

}  // namespace gpudiag::tool
