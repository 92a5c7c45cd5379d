// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// Where a live session's results go: the log's lines, the JSON lines of the rank, the API's callback.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gpudiag/gpudiag.h"
#include "report/line_pacer.hpp"
#include "report/session_json.hpp"
#include "session/appender.hpp"
#include "session/options.hpp"

namespace gpudiag {

/// The API's view of the latest iteration; outlives sessions. [any thread]
class LatestIteration {
 public:
  void set(const IterationLedger& ledger, std::uint32_t rank);
  bool get(gpudiag_iteration& into) const;
  void set_callback(gpudiag_iteration_callback callback, void* user);

 private:
  mutable std::mutex mutex_;
  std::optional<gpudiag_iteration> latest_;
  gpudiag_iteration_callback callback_ = nullptr;
  void* user_ = nullptr;
};

/// All of it is the drain thread's. Text gathers and leaves in flush(), one write() a file and round.
class Outputs {
 public:
  Outputs(const Settings& settings, const SessionInfo& info, LatestIteration& latest);

  void iteration(const IterationLedger& ledger, TimePoint now);
  void device(const DeviceInfo& device);
  /// Once in the JSON lines, and on the log where `tell`.
  void note(const SessionNote& note, bool tell);
  void quality(TimePoint at, const Quality& quality);
  void end(const SessionEnd& end);
  /// A line of ours that is no iteration: "gpudiag rank 3 " and `text`.
  void say(std::string_view text);
  void poll(TimePoint now) { pacer_.poll(now); }
  void flush();

  std::uint64_t iterations() const { return iterations_; }
  bool recording() const { return recording_.is_open(); }
  /// Bytes of the recording; false where they, or earlier ones, could not be written.
  bool record(std::string_view bytes);

 private:
  void open_files(const Settings& settings, const SessionInfo& info);
  void print(const std::string& line);
  void json(const std::string& line);

  std::uint32_t rank_;
  LogMode log_;
  StderrLine stderr_;
  AppendFile log_file_;
  AppendFile json_file_;
  AppendFile recording_;
  std::string json_text_;
  LinePacer pacer_;
  LatestIteration& latest_;
  std::uint64_t iterations_ = 0;
};

}  // namespace gpudiag
