// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Who makes the job wait, why and how often: the rank that is late by its own work, or the link whose
// transfers are slow. Whoever merely arrives late because others came late to it is no culprit.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/ranks/clock_fit.hpp"
#include "attribution/ranks/joined_replay.hpp"
#include "attribution/ranks/lateness.hpp"
#include "attribution/ranks/roles.hpp"

namespace gpudiag {

enum class CulpritKind : std::uint8_t { kCompute, kData, kHost, kCopy, kNetwork, kStage, kUnknown };
inline constexpr std::array<std::string_view, 7> kCulpritKindNames{"compute", "data",  "host",   "copy",
                                                                   "network", "stage", "unknown"};

enum class LatePattern : std::uint8_t { kPersistent, kPeriodic, kSporadic, kRotating };
inline constexpr std::array<std::string_view, 4> kLatePatternNames{"persistent", "periodic", "sporadic", "rotating"};

constexpr std::string_view name_of(CulpritKind kind) { return kCulpritKindNames[static_cast<std::size_t>(kind)]; }
constexpr std::string_view name_of(LatePattern pattern) { return kLatePatternNames[static_cast<std::size_t>(pattern)]; }

struct Culprit {
  CulpritKind kind = CulpritKind::kUnknown;
  Cause cause = Cause::kUnknown;        ///< of idle time on it; kUnknown where it is none
  SubCause sub_cause = SubCause::kNone;
  LatePattern pattern = LatePattern::kPersistent;
  std::uint32_t period = 0;             ///< iterations from one time to the next, where periodic
  std::vector<std::uint32_t> ranks;     ///< by their numbers in the job, the worst first
  std::string host;                     ///< where several ranks of one host are late together
  bool whole_job = false;               ///< a network that is slow for all alike
  DurationNs late;                      ///< in an iteration in which it was late, median
  DurationNs cost_per_iteration;        ///< what the job would save without it, over all iterations
  double share = 0;                     ///< of the job's time
  std::vector<std::uint64_t> iterations;///< indices in which it was late
  std::uint64_t iterations_seen = 0;
  CollectiveInfo collective;            ///< of a network: the one with most of the lost time
  double achieved_busbw = 0;            ///< GB/s, of that one
  double usual_busbw = 0;               ///< of those like it
};

/// What the joined graph says the job would take otherwise.
struct JobWhatIf {
  DurationNs recorded;          ///< from the job's first collective to its last
  DurationNs without_culprits;
  DurationNs ideal;             ///< each rank as quick as the ranks of its role are on the median
};

struct Blame {
  std::vector<Culprit> culprits;  ///< by cost, falling
  JobWhatIf what_if;
};

Blame find_culprits(std::span<const RankSummary> ranks, const JobTable& table, const ClockFit& clocks,
                    const Roles& roles, const Lateness& lateness);

}  // namespace gpudiag
