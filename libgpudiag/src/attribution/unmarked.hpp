// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Iterations of a job that marks none: hands the launches to the search for their pattern and makes
// boundaries of the turns that it finds. docs/iterations.md says what comes of it.
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/intake.hpp"
#include "attribution/outstanding.hpp"
#include "timeline/launch_pattern.hpp"

namespace gpudiag {

class Unmarked {
 public:
  Unmarked(const EngineOptions& options, const NameTable& names, Intake& in, const Outstanding& outstanding)
      : options_(options), names_(names), in_(in), outstanding_(outstanding) {}

  /// The store has been prepared: looks at the launches of which all is known. Calls that began before
  /// `frontier` have been charged already. With `final` there will be no others.
  void look(TimePoint frontier, bool final);
  /// Windows wait, for iterations may yet be found in them.
  bool holding() const { return waits_ && !gave_up_; }
  /// New records may hold launches that nobody has looked at.
  bool wants_records() const;
  PatternState state() const { return state_; }

 private:
  struct Device {
    LaunchPattern pattern;
    bool opened = false;  ///< its loop has its first boundary
    TimePoint window = kTimeMin;  ///< start of the window that is open, while the pattern is lost
  };
  /// The silences of a line of threads since its last launch.
  struct Line {
    TimePoint end = kTimeMin;
    TimePoint silent_from;
    DurationNs silence{-1};
  };

  bool is_marked() const;
  void feed(Call& call);
  void hear(Line& line, const Call& call) const;
  Launch launch_of(const Call& call);
  void describe(const Operation& operation, Launch& launch);
  void take_turns(Index device, TimePoint frontier);
  void cut_windows(Index device, TimePoint frontier);
  Loop& loop_of(Index device);
  void decide(bool final);

  const EngineOptions& options_;
  const NameTable& names_;
  Intake& in_;
  const Outstanding& outstanding_;
  LaunchNames known_;
  std::vector<Device> devices_;
  std::vector<Line> lines_;        ///< by thread that names the line
  TimePoint fed_until_ = kTimeMin; ///< start of the last call that was looked at
  TimePoint looked_at_ = kTimeMin; ///< tick at the last look
  std::size_t pending_ = 0;        ///< records at the last look
  bool waits_ = false;
  bool gave_up_ = false;
  PatternState state_;
};

}  // namespace gpudiag
