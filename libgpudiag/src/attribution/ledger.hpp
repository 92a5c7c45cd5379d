// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// The ledger of one iteration on one device: what the engine hands out and every report prints.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribution/cause.hpp"
#include "attribution/what_if.hpp"
#include "record/ids.hpp"
#include "record/record.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// Nanoseconds by cause.
using CauseTimes = std::array<DurationNs, kCauseCount>;

/// Why an iteration is in no sum.
enum class InvalidReason : std::uint8_t {
  kUntimed, kNegative, kForeignClock, kIncomplete, kDropped, kMissingRecords, kLaunchesWithoutOperations,
  kStoodAside, kReplayMismatch,
};
inline constexpr std::array<std::string_view, 9> kInvalidReasonNames{
    "untimed", "negative", "foreign_clock", "incomplete", "dropped", "missing_records",
    "launches_without_operations", "stood_aside", "replay_mismatch"};

enum class Phase : std::uint8_t { kTrain, kEvaluation, kWarmUp, kWindow };
inline constexpr std::array<std::string_view, 4> kPhaseNames{"train", "evaluation", "warm_up", "window"};

/// One kind of evidence inside an iteration: what was seen, how often, and what was charged for it.
struct Evidence {
  Cause cause = Cause::kUnknown;
  SubCause sub_cause = SubCause::kNone;
  std::string what;             ///< API call, range or operator; never empty
  ThreadId thread{};
  std::uint64_t count = 0;      ///< pieces of host time seen
  DurationNs host;              ///< their host time, in or out of a gap
  DurationNs charged;           ///< idle time of the device charged to them
  TimePoint longest_at;         ///< where the longest of them began
  std::uint64_t bytes = 0;      ///< of copies that held their caller up
};

/// The identity (attribution.md, section 2) holds exactly:
///   wall = compute + communication + copy + idle,   idle = sum of idle_by_cause.
struct IterationLedger {
  ProcessId process{};
  DeviceId device{};
  std::uint64_t index = 0;
  std::string label;
  MarkSource opened_by = MarkSource::kWindow;
  Phase phase = Phase::kTrain;
  bool partial = false;
  bool empty = false;            ///< no operation fell into it; wall is 0
  std::array<std::uint64_t, kInvalidReasonNames.size()> invalid{};  ///< defects by reason; all zero: valid
  /// Of those, what an earlier iteration of the device has counted already: one loss may lie in several.
  std::array<std::uint64_t, kInvalidReasonNames.size()> counted_before{};

  TimePoint start;               ///< window on the device
  DurationNs wall;
  DurationNs host_step;          ///< from mark to mark on the host; 0 where unknown
  DurationNs compute;            ///< at least one compute kernel runs
  DurationNs communication;      ///< exposed
  DurationNs copy;               ///< exposed
  DurationNs idle;
  CauseTimes idle_by_cause{};
  CauseTimes replay_cost{};      ///< what the replay without the cause would have saved of this window
  DurationNs replay_cost_communication;
  DurationNs replay_cost_copy;
  DurationNs replay_cost_all_host;
  DurationNs communication_total;  ///< exposed or not, union over streams
  DurationNs copy_total;
  DurationNs own;                ///< spent in our code on the chain's threads
  std::optional<DurationNs> straggler_wait;
  std::optional<DurationNs> transfer;
  std::uint64_t launches = 0;
  std::uint64_t operations = 0;
  std::uint64_t opaque_graphs = 0;
  /// What else was asked of the replay, once the answer had settled; an iteration may have none.
  std::vector<WhatIf> what_if;
  std::vector<Evidence> evidence;  ///< by charged time, falling; at most kEvidenceKept

  bool valid() const {
    for (auto count : invalid)
      if (count != 0) return false;
    return true;
  }
};

inline constexpr std::size_t kEvidenceKept = 16;

}  // namespace gpudiag
