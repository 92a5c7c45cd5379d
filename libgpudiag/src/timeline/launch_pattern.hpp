// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// Iterations that nobody marked, found in the sequence of a device's launches: a search looks for the
// cycle in what has been seen, and a tracker follows it from there on. docs/iterations.md has the rules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "timeline/launch_names.hpp"
#include "timeline/pattern_search.hpp"
#include "timeline/pattern_tracker.hpp"

namespace gpudiag {

/// One device's launches, in the order of their calls. Deterministic; not thread-safe. Memory: at
/// most kHistory launches of 40 bytes while it searches, twice the cycle's length of 24 afterwards.
/// Time: linear in the number of launches, for the searches are ever farther apart.
class LaunchPattern {
 public:
  /// Launches that a search looks at: five iterations of 20,000 and some.
  static constexpr std::size_t kHistory = std::size_t{1} << 17;

  enum class State : std::uint8_t { kSearching, kFound, kLost };

  void add(const Launch& launch);
  /// The last launch has been added: searches once more in what has not been searched.
  void finish();

  /// Turns that were found since the last call, in order of time. A turn is known only after what
  /// follows it, so it may lie far behind the newest launch.
  std::vector<Turn> take_turns();

  State state() const { return state_; }
  /// Of the newest cycle that was found.
  std::size_t length() const { return length_; }
  CycleEvidence evidence() const { return evidence_; }
  std::uint64_t launches() const { return count_; }

 private:
  void track(const Launch& launch);
  void start_over(State state);
  void remember(const Launch& launch);
  void search();
  void forget_half();
  void follow(CyclePattern&& cycle);

  State state_ = State::kSearching;
  std::uint64_t count_ = 0;
  std::uint64_t next_search_ = 5;
  std::uint64_t began_at_ = 0;       ///< the launch from which on the present cycle is sought
  std::uint64_t searches_from_ = 0;  ///< the launch at which the present history begins
  std::size_t searched_ = 0;
  std::vector<Launch> history_;
  std::optional<PatternTracker> tracker_;
  std::vector<Turn> turns_;
  std::uint64_t turned_until_ = 0;  ///< index of the last turn that was taken or told before a new cycle
  std::size_t length_ = 0;
  CycleEvidence evidence_ = CycleEvidence::kOptimizer;
};

}  // namespace gpudiag
