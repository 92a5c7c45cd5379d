// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What is behind the engine's door: each device's ledger, and the walk through the records that fills
// it. engine.cpp takes deliveries, engine_cuts.cpp cuts iterations, engine_walk.cpp replays.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "attribution/device_ledger.hpp"
#include "attribution/engine.hpp"
#include "attribution/inquiry.hpp"
#include "attribution/intake.hpp"
#include "attribution/outstanding.hpp"
#include "attribution/replay.hpp"
#include "attribution/unmarked.hpp"

namespace gpudiag {

class Engine::Impl {
 public:
  Impl(const EngineOptions& options, const NameTable& names, IterationCallback on_iteration)
      : options_(options), names_(names), on_iteration_(std::move(on_iteration)),
        in_(options_, names), outstanding_(options_, in_), unmarked_(options_, names_, in_, outstanding_),
        replay_(options_, in_.store, in_.ties, in_.labels, in_.samples) {}

  void add(const Record& record) {
    in_.add(record);
    if (record.kind == RecordKind::kTick) advance(false);
    else fresh_ = true;
  }
  void finish() { advance(true); }
  const Quality& quality() const { return in_.quality; }
  PatternState pattern() const { return unmarked_.state(); }

 private:
  /// What belongs to one device beside its ledger.
  struct Followed {
    DeviceLedger ledger;
    Index loop = kNone;               ///< kNone: windows of one second
    TimePoint host_start = kTimeMin;  ///< of the host's iteration that is open; kTimeMin: not known
    std::uint64_t count = 0;          ///< iterations so far
    std::uint64_t windows = 0;        ///< and pieces that are none
    bool in_window = false;           ///< what is open began with a window
    std::uint64_t launches = 0;
    std::uint64_t operations = 0;
    std::uint64_t missing = 0;
    std::uint64_t mismatches = 0;
    bool first = true;                ///< the open iteration may have begun before the records
  };

  void advance(bool final);
  void prepare(bool final);
  void tie_operations();
  void choose_loops();
  bool better(const Loop& a, const Loop& b, Index device);
  bool worth_preparing() const;
  TimePoint next_start() const;
  std::optional<Boundary> next_boundary(Index loop) const;
  bool take_cuts(bool final);
  bool cut_at(TimePoint at, bool final);
  void replay_until(TimePoint at, bool final);
  void replay_orphans_until(TimePoint at, bool final);
  bool queued_before_tracing(const Operation& operation);
  void count_call(const Call& call);
  void end_iteration(Followed& device, const Boundary& boundary, bool gave_up, bool partial);
  void end_part(Followed& device);
  static void count_hole(Hole& hole, Index device, IterationLedger& ledger);
  void count_defects(IterationLedger& ledger, const Followed& device, Index index, Interval window,
                     TimePoint until);
  static bool reaches_into(const Hole& hole, Interval window);
  bool is_past(const Hole& hole, TimePoint until) const;
  void close_windows(bool force);
  bool may_close(const PendingWindow& window, Index device) const;
  void reset_lines(TimePoint at);
  void think_over_questions();
  void split_long_iteration();
  void compact();

  const EngineOptions options_;
  const NameTable& names_;
  IterationCallback on_iteration_;
  Intake in_;
  Outstanding outstanding_;
  Unmarked unmarked_;
  Replay replay_;
  Inquiry inquiry_;
  std::vector<Followed> devices_;
  std::size_t next_call_ = 0;
  std::size_t next_orphan_ = 0;
  TimePoint frontier_ = kBeforeAll;       ///< calls that began before have been replayed
  TimePoint window_start_ = kTimeMin;   ///< of a job without marks
  TimePoint late_before_ = kTimeMin;    ///< what ended before should have been here
  bool fresh_ = false;
};

}  // namespace gpudiag
