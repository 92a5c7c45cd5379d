// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Cuts the host time between two calls of a line into labelled pieces (attribution.md, section 3).
#pragma once

#include <vector>

#include "attribution/engine.hpp"
#include "attribution/piece_log.hpp"
#include "timeline/labels.hpp"

namespace gpudiag {

/// A batch from workers that takes longer than this was not ready. On real traces a ready batch took
/// 0.07 to 1.7 ms to receive (resnet50_v100_workers4: 1.35 to 1.70 ms; a100_fsdp_rank3of8: 0.07 ms),
/// a late one 8 ms and more (resnet_2080ti_input_stalls).
inline constexpr DurationNs kReadyBatch = milliseconds(2);

/// One thread as evidence.
struct Witness {
  ThreadId id{};
  const ThreadLabels* labels = nullptr;
};

/// The pieces of [start, end), in order and without holes, appended to `out`. `first` is the thread
/// that makes the next call; where it has nothing to say the others are asked.
void cut_silence(TimePoint start, TimePoint end, const Witness& first,
                 const std::vector<Witness>& others, const EngineOptions& options,
                 std::vector<Piece>& out);

/// A copy that held its caller up.
struct HoldingCopy {
  CopyKind kind = CopyKind::kUnknown;  ///< unknown: there was none
  bool pageable = false;
  NameId name = kNoName;               ///< of the call that asked for it
  std::uint64_t bytes = 0;             ///< 0 where they have been counted
  bool counted = false;                ///< its own call stands in the evidence already
};

/// What a call is evidence for by itself. `blocked`: it waited for the device.
struct CallLabel {
  Cause cause = Cause::kLaunchOverhead;
  SubCause sub_cause = SubCause::kNone;
  HoldingCopy copy{};  ///< of kBlockingCopy
};
CallLabel label_of_call(ApiClass api, DurationNs length, bool blocked, const EngineOptions& options);

/// The pieces of a call [start, end) named `name`; our own time inside it is `host`, ours.
void cut_call(TimePoint start, TimePoint end, NameId name, CallLabel label, const Witness& thread,
              std::vector<Piece>& out);

}  // namespace gpudiag
