// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// `gpudiag.ranks/1`: the summary of one rank in a file, so that any number of ranks can be compared
// without their records. A line that names the format, then frames as in a recording
// (record/recording_format.hpp), written by appending alone: a job that is killed loses the frame it
// was writing, a damaged frame costs itself alone. docs/ranks.md has the layout.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "attribution/ranks/rank_summary.hpp"
#include "record/result.hpp"

namespace gpudiag {

inline constexpr std::string_view kRanksSchema = "gpudiag.ranks/1";
/// Of an iteration; of more every second one is left out, or two of three, and so on, on all ranks alike.
inline constexpr std::size_t kUsesKept = 160;

/// Writes one device of one rank. Not thread-safe.
class SummaryWriter {
 public:
  /// Appends all bytes or reports false; is not called again after that.
  using Append = std::function<bool(std::string_view)>;

  SummaryWriter(const RankIdentity& who, Append append);

  /// `uses` by arrival; their `about` counts in `abouts`, which may have grown since the last call.
  void add(const RankIteration& iteration, std::span<const CollectiveUse> uses,
           std::span<const CollectiveInfo> abouts);
  /// Writes what waits as a frame: it survives the process.
  void flush();
  /// The run ended in order. Nothing may follow.
  void finish();

  std::uint64_t bytes() const { return bytes_; }
  bool ok() const { return ok_; }

 private:
  void write_frame(char type, std::string_view payload);
  void append(std::string_view bytes);

  Append append_;
  std::string waiting_;
  std::string new_abouts_;
  std::size_t abouts_written_ = 0;
  std::uint64_t iterations_ = 0;   ///< in all, as the frames' counters say
  std::uint64_t in_frames_ = 0;
  std::int64_t previous_ = 0;      ///< time that the next one is relative to, within a frame
  std::uint64_t bytes_ = 0;
  bool ok_ = true;
};

/// Reads what a SummaryWriter wrote, whatever state it is in. An error where it is no summary, or one of
/// a version that this reader does not know.
Result<RankSummary> read_summary(std::string_view bytes);

}  // namespace gpudiag
