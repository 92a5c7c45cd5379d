// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What the host of a line was doing, piece by piece, until the gaps of that time have been charged.
#pragma once

#include <algorithm>
#include <cstddef>
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
  bool goes_on = false;     ///< with what the piece before was: one thing in two calls
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
    if (pieces_.size() >= kKept) {
      pieces_.erase(pieces_.begin(), pieces_.begin() + kKept / 2);
      last_found_ = 0;
    }
    pieces_.push_back(piece);
  }

  void forget_before(TimePoint frontier) {
    const auto kept = first_after(frontier);
    pieces_.erase(pieces_.begin(), pieces_.begin() + (kept - pieces_.begin()));
    last_found_ = 0;
  }

  /// The first piece that ends after `t`. Gaps are charged in order of time, so it is mostly near the
  /// one that was asked for last: from there the steps double until it is passed.
  std::vector<Piece>::const_iterator first_after(TimePoint t) const {
    std::size_t low = std::min(last_found_, pieces_.size());
    std::size_t high = pieces_.size();
    if (low > 0 && pieces_[low - 1].end > t) {
      high = low;
      low = 0;
    }
    for (std::size_t step = 1; low + step < high; step *= 2) {
      if (pieces_[low + step - 1].end > t) {
        high = low + step;
        break;
      }
      low += step;
    }
    const auto begin = pieces_.begin();
    const auto found = std::upper_bound(
        begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(high), t,
        [](TimePoint time, const Piece& piece) { return time < piece.end; });
    last_found_ = static_cast<std::size_t>(found - begin);
    return found;
  }
  std::vector<Piece>::const_iterator end() const { return pieces_.end(); }

 private:
  std::vector<Piece> pieces_;
  mutable std::size_t last_found_ = 0;  ///< a hint and no more
};

}  // namespace gpudiag
