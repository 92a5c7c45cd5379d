// SPDX-License-Identifier: Apache-2.0
// States of ranks to test with.
#pragma once

#include "session/peers/peer_watch.hpp"

namespace gpudiag {

/// `iterations` steps of 10 ms, each with one all-reduce of 1 ms transfer at its end, to which the rank
/// comes `late` after the earliest one.
inline PeerView peer(std::uint32_t rank, std::uint32_t world, std::size_t iterations, DurationNs late, DurationNs latest,
                     Cause cause = Cause::kDataLoading, SubCause sub = SubCause::kTooFewWorkers) {
  PeerView view;
  RankSummary& summary = view.state.summary;
  summary.who.rank = rank;
  summary.who.world_size = world;
  summary.who.host = "a";
  summary.who.pid = 1000 + rank;
  summary.who.job = "j";
  CollectiveInfo about;
  about.kind = CollectiveKind::kAllReduce;
  about.bytes = 1 << 20;
  about.group = "g";
  about.group_size = world;
  about.rank_in_group = rank;
  summary.abouts.push_back(about);
  const DurationNs compute = milliseconds(9);
  const DurationNs length = compute + latest + milliseconds(1);
  for (std::size_t i = 0; i < iterations; ++i) {
    RankIteration iteration;
    iteration.index = i;
    iteration.start = TimePoint{} + seconds(1) + DurationNs{length.ns * static_cast<std::int64_t>(i)};
    iteration.wall = length;
    iteration.compute = compute;
    iteration.idle = late;
    iteration.communication = length - compute - late;
    iteration.idle_by_cause[static_cast<std::size_t>(cause)] = late;
    iteration.sub_causes[static_cast<std::size_t>(cause)] = sub;
    iteration.first_use = static_cast<std::uint32_t>(summary.uses.size());
    iteration.use_count = 1;
    CollectiveUse use;
    use.sequence = static_cast<std::uint32_t>(i);
    use.arrival = use.start = iteration.start + compute + late;
    use.end = iteration.start + length;
    use.exposed = use.end - use.start;
    summary.uses.push_back(use);
    summary.iterations.push_back(iteration);
  }
  view.state.at = TimePoint{} + seconds(2);
  return view;
}

/// That many all-reduces were asked for, and since the last one nothing has ended for `waiting`.
inline GroupProgress progress(std::uint64_t called, DurationNs waiting = {}) {
  GroupProgress made;
  made.group = "nccl:1";
  made.newest = std::string(called, kind_letter(CollectiveKind::kAllReduce));
  made.group_size = 3;
  made.called = called;
  made.waiting = waiting;
  return made;
}

}  // namespace gpudiag
