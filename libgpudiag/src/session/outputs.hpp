// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// Where a live session's results go: the log's lines, the JSON lines of the rank, the API's callback.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "gpudiag/gpudiag.h"
#include "report/line_pacer.hpp"
#include "report/session_json.hpp"
#include "session/appender.hpp"
#include "session/options.hpp"
#include "session/rank_files.hpp"
#include "session/recent_run.hpp"

namespace gpudiag {

/// The API's view of the latest iterations; outlives sessions. [any thread]
class LatestIteration {
 public:
  void set(const IterationLedger& ledger, std::uint32_t rank);
  bool get(gpudiag_iteration& into) const;
  void set_callback(gpudiag_iteration_callback callback, void* user);
  /// gpudiag_take_iterations().
  std::size_t take(gpudiag_iteration* into, std::size_t capacity, int timeout_ms);

  /// Iterations that wait to be taken; of more the oldest go.
  static constexpr std::size_t kQueued = 4096;

  /// What gpudiag_report() is made of.
  RecentRun& recent() { return recent_; }

 private:
  RecentRun recent_;
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::optional<gpudiag_iteration> latest_;
  gpudiag_iteration_callback callback_ = nullptr;
  void* user_ = nullptr;
  bool queueing_ = false;
  std::deque<gpudiag_iteration> queue_;
};

/// All of it is the drain thread's. Text gathers and leaves in flush(), one write() a file and round.
class Outputs {
 public:
  Outputs(const Settings& settings, const SessionInfo& info, LatestIteration& latest);

  void iteration(const IterationLedger& ledger, TimePoint now);
  void device(const DeviceInfo& device);
  /// This process is a rank of several: its summary is written beside the lines, from here on.
  void begin_summary(RankIdentity who);
  bool summarizing() const { return ranks_ != nullptr; }
  /// What a summary has beyond the ledger.
  void summary(const IterationLedger& ledger, std::span<const CollectiveUse> uses,
               std::span<const CollectiveInfo> abouts);
  /// Once in the JSON lines, and on the log where `tell`.
  void note(const SessionNote& note, bool tell);
  void quality(TimePoint at, const Quality& quality);
  void end(const SessionEnd& end);
  /// A line of ours that is no iteration: "gpudiag rank 3 " and `text`.
  void say(std::string_view text);
  void poll(TimePoint now) { pacer_.poll(now); }
  void flush();

  std::uint64_t iterations() const { return iterations_; }
  /// The GPU is used: what there is to write goes to files. A process that never gets here (a
  /// launcher that only asks how many devices there are) leaves none.
  void used() { used_ = true; }
  bool recording() const { return record_; }
  /// Bytes of the recording; false where they, or earlier ones, could not be written.
  bool record(std::string_view bytes);

 private:
  void prepare_files(const Settings& settings, const SessionInfo& info);
  void open_files();
  void print(const std::string& line);
  void json(const std::string& line);
  bool json_wanted() const { return !dir_.empty() || json_file_.is_open(); }

  std::uint32_t rank_;
  LogMode log_;
  StderrLine stderr_;
  AppendFile log_file_;
  AppendFile json_file_;
  AppendFile recording_;
  // Of the files that are to be opened; an empty folder: none, or no more.
  std::string dir_;
  std::string stem_;  ///< of the files, once they are opened
  std::unique_ptr<RankFiles> ranks_;
  std::uint64_t pid_ = 0;
  bool record_ = false;
  bool used_ = false;
  bool opened_ = false;
  std::string json_text_;
  std::string record_bytes_;
  LinePacer pacer_;
  LatestIteration& latest_;
  std::uint64_t iterations_ = 0;
};

}  // namespace gpudiag
