// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What would pay most: causes ranked by what the replay would save without them. The ledger's
// shares say where time went; a cause that hides behind another has a large share and costs nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/cost_scatter.hpp"
#include "attribution/evidence_sums.hpp"
#include "attribution/ledger_sum.hpp"
#include "timeline/quality.hpp"

namespace gpudiag {

/// The causes of idle time by their own numbers, then what only findings name.
enum class FindingCause : std::uint8_t {
  kDataLoading, kCommunicationWait, kLaunchOverhead, kSync, kAllocation, kCheckpoint, kHost,
  kDependency, kUnknown,
  kCommunication,  ///< exposed communication
  kCopy,           ///< exposed copies
  kHostTogether,   ///< host causes that hide each other: removing one alone gains little
  kRecompilation,  ///< code is compiled again after warm-up
  kGraphRecapture, ///< graphs are captured or instantiated again after warm-up
  kStraggler,      ///< a rank, or some, that the others wait for (attribution/ranks)
};
inline constexpr std::array<std::string_view, 6> kFindingOnlyNames{
    "communication", "copy", "host_together", "recompilation", "graph_recapture", "straggler"};

constexpr FindingCause finding_cause(Cause cause) { return static_cast<FindingCause>(cause); }
constexpr std::string_view name_of(FindingCause cause) {
  const auto number = static_cast<std::size_t>(cause);
  return number < kCauseCount ? kCauseNames[number] : kFindingOnlyNames[number - kCauseCount];
}

enum class Confidence : std::uint8_t { kHigh, kMedium, kLow };
inline constexpr std::array<std::string_view, 3> kConfidenceNames{"high", "medium", "low"};

/// Verdicts that are no cause. Any other verdict is the cause of the first finding.
enum class VerdictOnly : std::uint8_t {
  kNone,           ///< nothing costs 2 % of wall
  kUnknown,        ///< most idle time has no evidence
  kPoorQuality,    ///< the records do not bear a verdict
  kNoGpuActivity,  ///< no operation of a GPU was recorded
  kOwnOverhead,    ///< gpudiag's own cost may be the cause
};
inline constexpr std::array<std::string_view, 5> kVerdictOnlyNames{
    "none", "unknown", "poor_quality", "no_gpu_activity", "own_overhead"};

/// What removing one of several sub-causes would save.
struct SubCost {
  SubCause sub_cause = SubCause::kNone;
  double share = 0;
  DurationNs cost_per_iteration;
};

struct Finding {
  FindingCause cause = FindingCause::kUnknown;
  SubCause sub_cause = SubCause::kNone;
  /// Another cause that hides this one and is hidden by it: costs are of removing both. Empty: none.
  std::string together_with;
  std::vector<SubCost> sub_costs;     ///< falling; empty where the cause has no two that are known
  std::optional<double> every;        ///< iterations from one time to the next, of what comes back seldom
  std::optional<std::uint32_t> rank;  ///< none: the job as a whole
  double share = 0;                   ///< of wall, 0 to 1
  double share_margin = 0;            ///< half of the interval that holds it with 95 % of confidence
  bool upper_bound = false;           ///< more than can be saved: launches cannot be made free
  double ranked_by = 0;               ///< of an upper bound, what of it the ledger charges
  DurationNs cost_per_iteration;      ///< of a rank, summed over its devices
  double speedup_if_fixed = 1;        ///< wall / (wall - cost)
  std::vector<std::string> evidence;
  std::string advice;
  Confidence confidence = Confidence::kLow;
};

struct Diagnosis {
  std::vector<Finding> findings;  ///< by `ranked_by`, falling
  std::string verdict;            ///< of the names above
  std::string reason;             ///< one sentence
};

/// What is known of one rank, summed over its devices.
struct RankBasis {
  std::uint32_t rank = 0;
  LedgerSum sum;                 ///< over the steady iterations, or all valid ones
  std::uint64_t iterations = 0;  ///< of the device with most of them
  bool steady = false;
  bool finished = true;          ///< false: the job died with its session open
  bool torch = false;            ///< PyTorch was seen in it
  EvidenceSums evidence;
  std::vector<CostScatter> scatter;  ///< of each device, over the same iterations as `sum`
  Quality quality;
  std::uint64_t invalid_iterations = 0;
  std::array<std::uint64_t, kInvalidReasonNames.size()> invalid_reasons{};
  std::uint64_t launches = 0;    ///< seen in all iterations, valid or not
  std::uint64_t operations = 0;  ///< likewise
};

/// A pure function. A rank that stands out has findings of its own where the job as a whole has none
/// of that cause.
Diagnosis diagnose(std::span<const RankBasis> ranks);

}  // namespace gpudiag
