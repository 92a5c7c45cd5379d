// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: the ranks of one job, while it runs.
// What a rank shows the others of itself: its newest iterations, what it does at this moment, and how
// far it is in each communicator.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/ranks/rank_summary.hpp"

namespace gpudiag {

/// How far a rank is in one communicator, by NCCL's own ranges on the host.
struct GroupProgress {
  std::string group;             ///< as CollectiveInfo::group
  std::string newest;            ///< kinds of the newest calls, each a letter: see kind_letter()
  std::uint32_t group_size = 0;  ///< 0: not known
  std::uint32_t rank_in_group = kNoRank;
  std::uint64_t called = 0;      ///< operations that were asked for since the communicator was made
  DurationNs waiting;            ///< since the newest was asked for, with nothing ended since; 0: nothing waits

  bool operator==(const GroupProgress&) const = default;
};
constexpr char kind_letter(CollectiveKind kind) { return static_cast<char>('a' + static_cast<int>(kind)); }
/// Of operation `number`, where it is among the newest.
CollectiveKind kind_of(const GroupProgress& progress, std::uint64_t number);

struct PeerState {
  RankSummary summary;       ///< the newest iterations
  TimePoint at;              ///< when it was written, on the rank's own session clock
  std::string doing;         ///< the innermost range its main thread is in, or the call that holds it up
  DurationNs doing_for;
  std::vector<GroupProgress> groups;
  bool left = false;         ///< has ended its session in order
};

/// The newest iterations that go along; older ones are left out first where it gets too long.
/// Ranks' records come at different times, so that many are needed for some to be of all ranks.
inline constexpr std::size_t kPeerIterations = 64;
inline constexpr std::size_t kPeerUsesKept = 256;  ///< of an iteration
inline constexpr std::size_t kPeerBytes = 60'000;  ///< of an encoded state, at the most

/// For the same build of the same machine type on both sides: the first word says which.
std::string encode(const PeerState& state);
/// Nothing where the bytes are no whole state. They may come from anywhere.
std::optional<PeerState> decode_peer(std::string_view bytes);

}  // namespace gpudiag
