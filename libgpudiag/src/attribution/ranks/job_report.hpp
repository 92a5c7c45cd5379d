// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// The door of this folder: summaries of ranks in, one report for each job among them out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/ranks/clock_fit.hpp"
#include "attribution/ranks/culprits.hpp"
#include "attribution/ranks/job_table.hpp"
#include "attribution/ranks/rank_summary.hpp"
#include "attribution/ranks/waits.hpp"

namespace gpudiag {

/// Something about the input that the reader must know, such as {"missing_ranks", "…"}.
struct JobNote {
  std::string code;  ///< snake_case, for programs
  std::string text;  ///< for people

  bool operator==(const JobNote&) const = default;
};

/// All collectives of one kind, size and size of group.
struct CollectiveSum {
  CollectiveInfo about;              ///< without group and rank
  std::uint32_t group_size = 0;      ///< as said, else as seen
  std::uint64_t count = 0;           ///< collectives, not their parts
  DurationNs transfer;               ///< median, from the last arrival to the end
  DurationNs wait;                   ///< in all, over all ranks: own arrival to the last one
  double algbw = 0;                  ///< GB/s, of the median transfer; 0: bytes not known
  double busbw = 0;
};

/// What the job's time went into; shares of the wall time of all ranks, 0 to 1.
struct Goodput {
  DurationNs wall;          ///< from the first iteration's start to the last one's end, mean of ranks
  double training = 0;      ///< in complete, valid training iterations after warm-up, or what they would have taken
  double effective = 0;     ///< a compute kernel ran
  double nominal = 0;       ///< anything ran: what utilisation counters show
};

/// Of one iteration of the job.
struct JobIteration {
  std::uint64_t index = 0;
  DurationNs wall;                            ///< median of ranks
  std::optional<std::uint32_t> slowest;       ///< the rank that was late by its own work; none was
  DurationNs late;
};

/// Of one rank, over its comparable iterations.
struct RankShare {
  std::uint32_t rank = 0;
  std::uint64_t iterations = 0;
  DurationNs communication;   ///< exposed
  DurationNs straggler_wait;
  DurationNs transfer;
  DurationNs late;            ///< by its own work, where beyond chance
};

struct JobReport {
  std::string job;
  std::uint32_t world_size = 0;               ///< as its ranks say; 0: they do not
  std::uint32_t restart = 0;
  std::vector<std::size_t> members;           ///< positions in the summaries that were given, by rank
  std::vector<JobNote> notes;
  MatchCounts counts;
  std::vector<HostClock> clocks;
  std::vector<std::uint64_t> indices;         ///< of iterations
  std::vector<std::optional<RankWait>> waits; ///< [member * indices + iteration]
  std::vector<RankShare> ranks;               ///< by member
  std::vector<CollectiveSum> collectives;     ///< by time lost in them, falling
  std::vector<JobIteration> iterations;
  std::size_t roles = 0;                      ///< kinds of ranks that were told apart
  Blame blame;
  Goodput goodput;
  std::uint32_t repeated_reductions = 0;      ///< gradients are reduced so often an iteration; 0: once
};

/// Ranks of one job: told apart by what the launcher calls it, its world size and restarts, and held
/// together by at least one collective that matches. What belongs to no job of two ranks and more is in
/// no report.
std::vector<JobReport> analyze_jobs(std::span<const RankSummary> summaries);

/// Of ranks that are one job, by rank.
JobReport analyze_job(std::span<const RankSummary> ranks);

/// The live comparison: of the newest iteration that all `ranks` have, who was late and by how much.
/// The same as analyze_job() on summaries that hold that iteration and the one before.
std::optional<JobIteration> compare_latest(std::span<const RankSummary> ranks);

}  // namespace gpudiag
