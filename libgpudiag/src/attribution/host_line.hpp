// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// A host line (the threads that launch for each other) as far as the replay has come.
#pragma once

#include <array>
#include <cstdint>

#include "attribution/evidence_table.hpp"
#include "attribution/piece_log.hpp"
#include "attribution/worlds.hpp"
#include "timeline/store.hpp"

namespace gpudiag {

/// The latest piece of a cause, to which is charged what the cause claims later. A wait of
/// microseconds right behind one of milliseconds is not what took the lead.
struct LastPiece {
  EvidenceKey key{};
  TimePoint end = kTimeMin;
  DurationNs length;

  void see(const Piece& piece, DurationNs same_breath) {
    constexpr std::int64_t kTrifle = 10;
    const DurationNs now = piece.end - piece.start;
    if (end != kTimeMin && piece.start - end < same_breath && now.ns * kTrifle < length.ns) return;
    key = piece.key;
    end = piece.end;
    length = now;
  }
};

/// The host time of a line as far as it has been replayed.
struct HostLine {
  TimePoint at = kTimeMin;
  Lanes shift{};                 ///< by how much the host would be earlier, in each world
  TimePoint before_at = kTimeMin;
  Lanes before{};                ///< shift before the last call that blocked
  Index blocked_thread = kNone;  ///< whose call that was
  std::int64_t latency = 0;      ///< from a launch's return to its start, as last seen
  PieceLog log;
  std::array<LastPiece, kCauseCount> last{};
  EvidenceTable evidence;        ///< of the host's iteration that is open
  DurationNs own;                ///< our own time in it
  std::uint64_t calls = 0;
};

}  // namespace gpudiag
