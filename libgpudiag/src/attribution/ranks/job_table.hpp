// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// All ranks of a job as one table: whose uses belong to the same collective. Inside of the comparison
// of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attribution/ranks/rank_summary.hpp"

namespace gpudiag {

inline constexpr std::uint32_t kNowhere = 0xffffffffu;

/// One use, with its place in the job. Times are of the rank's own clock until they are aligned.
struct JobUse {
  TimePoint arrival;
  TimePoint end;
  DurationNs exposed;
  DurationNs work;                  ///< from the end of what it last waited for to its arrival
  std::uint32_t base = kNowhere;    ///< that use; kNowhere: none is known, and `work` says nothing
  std::uint32_t match = kNowhere;
  std::uint32_t rank = 0;           ///< position in the span of summaries
  std::uint32_t iteration = 0;      ///< position in JobTable::indices
  std::uint32_t about = 0;          ///< in JobTable::abouts
  /// It began when the operation of its group before it ended: when the rank was ready, nobody knows.
  bool queued = false;
};

/// The uses that are one collective.
struct Match {
  std::uint32_t first = 0;  ///< in JobTable::members
  std::uint32_t count = 0;
  std::uint32_t about = 0;  ///< of its first member
  std::uint32_t group = 0;  ///< in JobTable::groups
  std::uint32_t iteration = 0;
};

/// How far the ranks' uses could be joined.
struct MatchCounts {
  std::uint64_t uses = 0;
  std::uint64_t matched = 0;        ///< uses in a collective of two ranks and more
  std::uint64_t collectives = 0;
  std::uint64_t alone = 0;          ///< no other rank had its counterpart
  std::uint64_t incomplete = 0;     ///< collectives in which fewer ranks were seen than the group has
  std::uint64_t kinds_differ = 0;   ///< same place in the group's order, another kind or size
};

struct JobTable {
  std::vector<std::uint64_t> indices;   ///< of iterations, over all ranks, rising
  std::vector<CollectiveInfo> abouts;   ///< without what differs between the ranks of a group
  std::vector<std::string> groups;
  std::vector<JobUse> uses;             ///< by rank, then iteration, then arrival
  std::vector<std::uint32_t> starts;    ///< of rank r's iteration i: [starts[r*n+i], starts[r*n+i+1])
  std::vector<Match> matches;           ///< by iteration, then time
  std::vector<std::uint32_t> members;   ///< uses
  std::vector<const RankIteration*> iterations;  ///< [r*n+i]; null where the rank has none
  MatchCounts counts;

  std::size_t iteration_count() const { return indices.size(); }
  std::span<const JobUse> uses_of(std::size_t rank, std::size_t iteration) const {
    const std::size_t cell = rank * indices.size() + iteration;
    return std::span{uses}.subspan(starts[cell], starts[cell + 1] - starts[cell]);
  }
  std::span<const std::uint32_t> members_of(const Match& match) const {
    return std::span{members}.subspan(match.first, match.count);
  }
  const RankIteration* iteration_of(std::size_t rank, std::size_t iteration) const {
    return iterations[rank * indices.size() + iteration];
  }
};

/// By group, sequence number and kind; where there is no sequence number, by the order in which the
/// rank used the group within the iteration of that index. Never by time. O(n log n) in uses.
JobTable make_job_table(std::span<const RankSummary> ranks);

}  // namespace gpudiag
