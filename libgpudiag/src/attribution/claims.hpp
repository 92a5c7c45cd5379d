// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Divides one gap of a device among the causes (attribution.md, section 4).
#pragma once

#include "attribution/engine.hpp"
#include "attribution/evidence_table.hpp"
#include "attribution/replay.hpp"

namespace gpudiag {

/// An idle stretch of a device and the operation of its chain that ended it.
struct Gap {
  TimePoint start;
  TimePoint end;
  Index next = kNone;  ///< kNone: nothing of the chain came after
};

/// Follows the shift of a device's frontier from gap to gap.
class Claims {
 public:
  /// The device is first used at `at`, in each world at `in`.
  void open(TimePoint at, const Lanes& in);
  /// An operation of the chain began; calls in order of start.
  void pass(const Arrival& end);
  /// The claim of each cause on the gap, and in the world without host causes what remains of it.
  /// `start_in`: start of the operation that ends the gap. Of worlds whose claims nobody asks for none
  /// are kept.
  void reach(const Gap& gap, const Lanes& start_in);
  const Lanes& claims() const { return claims_; }
  DurationNs remains() const { return remains_; }

 private:
  Lanes frontier_{};  ///< when the work so far would be done, in each world
  Lanes after_{};     ///< shift of the device at the end of the last gap
  Lanes balance_{};   ///< growth in busy time; negative growth counts against later claims
  Lanes claims_{};
  DurationNs remains_;
};

/// Charges `gap` completely: adds to `charged`, and to `evidence` what each part was charged for.
void divide(const Gap& gap, const OperationReplay* next, NameId next_name, const Claims& claims,
            const HostLine* line, const EngineOptions& options, CauseTimes& charged,
            EvidenceTable& evidence);

}  // namespace gpudiag
