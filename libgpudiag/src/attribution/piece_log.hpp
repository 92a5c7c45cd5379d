// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What the host of a line was doing, piece by piece, until the gaps of that time have been charged.
#pragma once

#include <algorithm>
#include <vector>

#include "attribution/evidence_table.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// A stretch of host time with one meaning.
struct Piece {
  TimePoint start;
  TimePoint end;
  EvidenceKey key;
  bool anonymous = false;   ///< launches and dispatch: carries no label of its own
  bool late_batch = false;  ///< a batch that workers did not have ready arrived at `end`
};

/// Pieces in order of time; anonymous neighbours are one piece. Bounded: beyond kKept the oldest go.
class PieceLog {
 public:
  static constexpr std::size_t kKept = 1u << 18;

  void add(const Piece& piece) {
    if (!pieces_.empty() && pieces_.back().anonymous && piece.anonymous &&
        pieces_.back().end == piece.start) {
      pieces_.back().end = piece.end;
      return;
    }
    if (pieces_.size() >= kKept) pieces_.erase(pieces_.begin(), pieces_.begin() + kKept / 2);
    pieces_.push_back(piece);
  }

  void forget_before(TimePoint frontier) {
    const auto kept = first_after(frontier);
    pieces_.erase(pieces_.begin(), pieces_.begin() + (kept - pieces_.begin()));
  }

  /// The first piece that ends after `t`.
  std::vector<Piece>::const_iterator first_after(TimePoint t) const {
    return std::upper_bound(pieces_.begin(), pieces_.end(), t,
                            [](TimePoint time, const Piece& piece) { return time < piece.end; });
  }
  std::vector<Piece>::const_iterator end() const { return pieces_.end(); }

 private:
  std::vector<Piece> pieces_;
};

}  // namespace gpudiag
