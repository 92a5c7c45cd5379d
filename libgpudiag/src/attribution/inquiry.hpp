// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Decides what the replay is asked (what_if.hpp): the pairs of what takes most time, where removing each
// alone does not add up to removing all, and the sub-causes of causes that have several.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "attribution/evidence_table.hpp"
#include "attribution/ledger.hpp"
#include "attribution/worlds.hpp"

namespace gpudiag {

/// Hangs on nothing but what the host's iterations held, so that the order of delivery does not matter.
class Inquiry {
 public:
  using Questions = std::array<Question, kAskedWorlds>;

  /// An iteration of a device ended: its wall and replay costs, and what the host did in it.
  void add(const IterationLedger& ledger, const EvidenceTable& host);
  /// Device time of communication and copies since the last call.
  void add_busy(DurationNs communication, DurationNs copies);
  /// After all devices of an iteration: true where the questions are to be thought over, which is after
  /// the iterations 1, 2, 4, 8 ...
  bool end_iteration();
  /// By falling worth; unused places ask nothing.
  Questions choose() const;

 private:
  using Weight = std::pair<Removal, DurationNs>;
  std::vector<Weight> leading() const;
  std::vector<Weight> sub_causes() const;

  std::uint64_t iterations_ = 0;
  std::uint64_t next_ = 1;
  DurationNs wall_;
  DurationNs alone_;     ///< saved by each host cause, added up
  DurationNs together_;  ///< saved by all at once
  CauseTimes host_{};    ///< time that the host spent with each cause
  std::map<Removal, DurationNs> by_sub_cause_;
  DurationNs communication_, copies_;  ///< device time
  DurationNs saved_communication_, saved_copies_;
};

}  // namespace gpudiag
