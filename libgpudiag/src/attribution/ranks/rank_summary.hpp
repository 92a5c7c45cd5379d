// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What one rank tells the others: of each iteration its ledger, of each collective when it arrived and
// when it left. All that the comparison of ranks works on, live or afterwards, from whatever source.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attribution/ledger.hpp"
#include "record/collective.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// Who it is. Fields that are not known are empty, 0 or kNoRank.
struct RankIdentity {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint32_t local_rank = kNoRank;
  std::uint64_t pid = 0;
  DeviceId device{};
  std::int64_t origin_unix_ns = 0;  ///< of the times, by the host's own clock
  std::uint32_t restart = 0;        ///< how often an elastic launcher began anew before
  std::string job;                  ///< what the launcher calls the job; equal on all its ranks
  std::string host;
  std::string device_name;
  std::string pci;                  ///< "0000:3b:00.0"
  std::int32_t numa_node = -1;
  std::string version;              ///< of gpudiag, that wrote it
  std::string source;               ///< file it was read from

  bool operator==(const RankIdentity&) const = default;
};

/// One operation of a rank in a collective. `about` counts in RankSummary::abouts.
struct CollectiveUse {
  std::uint32_t about = 0;
  std::uint32_t sequence = kNoSequence;
  TimePoint arrival;   ///< the rank was ready for it: its kernel began, or its host call where seen
  TimePoint start;     ///< its kernel began
  TimePoint end;
  DurationNs exposed;  ///< of [start, end), the time in which no compute kernel ran

  bool operator==(const CollectiveUse&) const = default;
};

struct RankIteration {
  std::uint64_t index = 0;
  Phase phase = Phase::kTrain;
  bool partial = false;
  bool valid = true;
  TimePoint start;
  DurationNs wall;
  DurationNs compute;
  DurationNs communication;
  DurationNs copy;
  DurationNs idle;
  CauseTimes idle_by_cause{};
  std::array<SubCause, kCauseCount> sub_causes{};  ///< the dearest of each cause; kNone where none
  std::uint32_t first_use = 0;   ///< in RankSummary::uses
  std::uint32_t use_count = 0;
  std::uint32_t left_out = 0;    ///< uses that there was no room for

  bool operator==(const RankIteration&) const = default;
  TimePoint end() const { return start + wall; }
};

/// One device of one rank. A value.
struct RankSummary {
  RankIdentity who;
  std::vector<CollectiveInfo> abouts;
  std::vector<RankIteration> iterations;  ///< in order
  std::vector<CollectiveUse> uses;        ///< of one iteration after another, there by arrival
  bool finished = true;                   ///< closed in order; a killed job's is not
  bool truncated = false;                 ///< ends in the middle
  std::uint64_t broken = 0;               ///< damaged stretches that were skipped

  std::span<const CollectiveUse> uses_of(const RankIteration& iteration) const {
    return std::span{uses}.subspan(iteration.first_use, iteration.use_count);
  }
};

/// A ledger as a summary keeps it, but for the uses.
RankIteration rank_iteration_of(const IterationLedger& ledger);

}  // namespace gpudiag
