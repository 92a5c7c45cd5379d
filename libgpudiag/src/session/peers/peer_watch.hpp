// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: the ranks of one job, while it runs.
// What the states of all ranks say together: who is slow and why, which collective does not end and who
// is missing from it, who is gone. Pure: states and a time in, lines out.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "session/peers/peer_state.hpp"

namespace gpudiag {

struct PeerView {
  PeerState state;
  DurationNs silent_for;     ///< since it was last heard from
  bool lives = true;         ///< false: its process is gone
};

struct PeerLine {
  std::string code;  ///< for programs: "slowest_rank", "collective_stuck", "rank_gone", "rank_silent"
  std::string text;  ///< for people
  bool again = false;  ///< was said before, in these words or with another figure

  bool operator==(const PeerLine&) const = default;
};

/// Says each thing once, and the slowest rank again every kSayAgain. Not thread-safe.
class PeerWatch {
 public:
  /// A collective is said to be stuck after `stuck_after`.
  explicit PeerWatch(DurationNs stuck_after) : stuck_after_{stuck_after} {}

  std::vector<PeerLine> update(std::span<const PeerView> peers, TimePoint now);

  static constexpr DurationNs kSayAgain = seconds(10);
  /// Ranks tell of themselves once a second.
  static constexpr DurationNs kSilent = seconds(8);

 private:
  void find_absent(std::span<const PeerView> peers, std::vector<PeerLine>& lines);
  void find_stuck(std::span<const PeerView> peers, std::vector<PeerLine>& lines);
  void find_slowest(std::span<const PeerView> peers, TimePoint now, std::vector<PeerLine>& lines);

  DurationNs stuck_after_;
  std::set<std::uint32_t> gone_;
  std::set<std::uint32_t> silent_;
  std::set<std::pair<std::string, std::uint64_t>> stuck_;  ///< group and number of the operation
  std::string slowest_;                                    ///< who and why, without figures
  TimePoint said_at_ = kTimeMin;
  std::uint64_t compared_ = ~std::uint64_t{0};             ///< the newest iteration that was compared
};

}  // namespace gpudiag
