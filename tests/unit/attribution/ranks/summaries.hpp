// SPDX-License-Identifier: Apache-2.0
// Literal summaries for tests. Times in microseconds; what a test does not say is a rank of a world as
// large as the test's job, on a host of its own with a clock of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attribution/ranks/rank_summary.hpp"

namespace gpudiag::testing {

inline CollectiveInfo all_reduce(std::string group = "all", std::uint32_t size = 0, std::uint64_t bytes = 0) {
  CollectiveInfo info;
  info.kind = CollectiveKind::kAllReduce;
  info.group = std::move(group);
  info.group_size = size;
  info.bytes = bytes;
  return info;
}

/// Builds one rank, iteration by iteration.
class RankBuilder {
 public:
  explicit RankBuilder(std::uint32_t rank, std::uint32_t world) {
    made.who.rank = rank;
    made.who.world_size = world;
    made.who.host = "host" + std::to_string(rank);
    made.who.job = "job";
  }

  RankBuilder& iteration(std::uint64_t index, std::int64_t start_us, std::int64_t wall_us) {
    RankIteration iteration;
    iteration.index = index;
    iteration.start = {start_us * 1000 + offset_ns};
    iteration.wall = microseconds(wall_us);
    iteration.first_use = static_cast<std::uint32_t>(made.uses.size());
    made.iterations.push_back(iteration);
    return *this;
  }
  /// Of the iteration in hand; waits from `arrival` to `end`.
  RankBuilder& use(const CollectiveInfo& about, std::int64_t arrival_us, std::int64_t end_us,
                   std::uint32_t sequence = kNoSequence) {
    std::uint32_t id = 0;
    while (id < made.abouts.size() && made.abouts[id] != about) ++id;
    if (id == made.abouts.size()) made.abouts.push_back(about);
    CollectiveUse use;
    use.about = id;
    use.sequence = sequence;
    use.arrival = use.start = {arrival_us * 1000 + offset_ns};
    use.end = {end_us * 1000 + offset_ns};
    use.exposed = use.end - use.start;
    made.uses.push_back(use);
    ++made.iterations.back().use_count;
    made.iterations.back().communication += use.exposed;
    return *this;
  }
  RankBuilder& compute(std::int64_t us) {
    made.iterations.back().compute = microseconds(us);
    return *this;
  }
  RankBuilder& idle(Cause cause, std::int64_t us, SubCause sub_cause = SubCause::kNone) {
    RankIteration& last = made.iterations.back();
    last.idle += microseconds(us);
    last.idle_by_cause[static_cast<std::size_t>(cause)] = microseconds(us);
    last.sub_causes[static_cast<std::size_t>(cause)] = sub_cause;
    return *this;
  }

  std::int64_t offset_ns = 0;  ///< of the host's clock
  RankSummary made;
};

/// `world` ranks, each iteration 10 ms of work and an all-reduce of 1 ms that begins when the last has
/// come. `extra_us(rank, iteration)` is what a rank needs beyond its 10 ms, before it arrives.
template <typename Extra>
std::vector<RankSummary> data_parallel_job(std::uint32_t world, std::uint32_t iterations, Extra extra_us,
                                           std::int64_t clock_step_ns = 0) {
  std::vector<RankBuilder> ranks;
  for (std::uint32_t r = 0; r < world; ++r) {
    ranks.emplace_back(r, world);
    ranks.back().offset_ns = static_cast<std::int64_t>(r) * clock_step_ns;
  }
  std::int64_t now = 0;
  for (std::uint32_t i = 0; i < iterations; ++i) {
    std::int64_t last = 0;
    for (std::uint32_t r = 0; r < world; ++r) last = std::max<std::int64_t>(last, 10'000 + extra_us(r, i));
    const std::int64_t end = now + last + 1'000;
    for (std::uint32_t r = 0; r < world; ++r) {
      ranks[r].iteration(i, now, end - now).use(all_reduce(), now + 10'000 + extra_us(r, i), end, i);
      ranks[r].compute(10'000).idle(Cause::kDataLoading, extra_us(r, i), SubCause::kTooFewWorkers);
    }
    now = end;
  }
  std::vector<RankSummary> made;
  for (RankBuilder& rank : ranks) made.push_back(std::move(rank.made));
  return made;
}

}  // namespace gpudiag::testing
