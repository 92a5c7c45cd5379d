// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/joined_replay.hpp"

#include <algorithm>

namespace gpudiag {

// Kahn's order over matches and lone uses; what a wrong match has made a circle of comes last, by time.
JoinedReplay::JoinedReplay(const JobTable& table, const Lateness& lateness) : table_{table}, lateness_{lateness} {
  const auto matches = static_cast<std::uint32_t>(table.matches.size());
  const auto uses = static_cast<std::uint32_t>(table.uses.size());
  const auto node_of = [&](std::uint32_t use) {
    return table.uses[use].match != kNowhere ? table.uses[use].match : matches + use;
  };
  std::vector<std::uint32_t> waits_for(matches + uses, 0);
  std::vector<std::uint32_t> first_dependent(uses, kNowhere);
  std::vector<std::uint32_t> next_dependent(uses, kNowhere);
  for (std::uint32_t use = 0; use < uses; ++use) {
    first_ = std::min(first_, table.uses[use].arrival);
    const std::uint32_t base = table.uses[use].base;
    if (base == kNowhere) continue;
    ++waits_for[node_of(use)];
    next_dependent[use] = first_dependent[base];
    first_dependent[base] = use;
  }
  std::vector<bool> done(matches + uses, false);
  order_.reserve(matches + uses);
  const auto begin = [&](std::uint32_t node) {
    done[node] = true;
    order_.push_back(node);
  };
  for (std::uint32_t m = 0; m < matches; ++m)
    if (waits_for[m] == 0) begin(m);
  for (std::uint32_t use = 0; use < uses; ++use)
    if (table.uses[use].match == kNowhere && waits_for[matches + use] == 0) begin(matches + use);
  const auto release = [&](std::uint32_t use) {
    for (std::uint32_t next = first_dependent[use]; next != kNowhere; next = next_dependent[next])
      if (const std::uint32_t node = node_of(next); --waits_for[node] == 0 && !done[node]) begin(node);
  };
  std::size_t looked_at = 0;
  const auto drain = [&] {
    for (; looked_at < order_.size(); ++looked_at) {
      const std::uint32_t node = order_[looked_at];
      if (node >= matches) release(node - matches);
      else
        for (const std::uint32_t use : table.members_of(table.matches[node])) release(use);
    }
  };
  drain();
  for (std::uint32_t m = 0; m < matches; ++m)
    if (!done[m]) {
      begin(m);
      drain();
    }
  for (std::uint32_t use = 0; use < uses; ++use)
    if (table.uses[use].match == kNowhere && !done[matches + use]) {
      begin(matches + use);
      drain();
    }
  recorded_ = length({});
}

void JoinedReplay::run(const World& world, std::vector<TimePoint>& ends) const {
  const auto matches = static_cast<std::uint32_t>(table_.matches.size());
  ends.assign(table_.uses.size(), TimePoint{});
  const auto arrival_of = [&](std::uint32_t id) {
    const JobUse& use = table_.uses[id];
    if (use.base == kNowhere) return use.arrival;
    const DurationNs removed = world.work ? world.work(id) : DurationNs{};
    return ends[use.base] + (use.work - removed);
  };
  for (const std::uint32_t node : order_) {
    if (node >= matches) {
      const JobUse& use = table_.uses[node - matches];
      ends[node - matches] = arrival_of(node - matches) + (use.end - use.arrival);
      continue;
    }
    const Match& match = table_.matches[node];
    const auto members = table_.members_of(match);
    TimePoint last = kTimeMin;
    TimePoint last_recorded = kTimeMin;
    for (const std::uint32_t id : members) {
      last = std::max(last, arrival_of(id));
      last_recorded = std::max(last_recorded, table_.uses[id].arrival);
    }
    const DurationNs removed = world.transfer ? world.transfer(node) : DurationNs{};
    for (const std::uint32_t id : members) ends[id] = last + (table_.uses[id].end - last_recorded) - removed;
  }
}

DurationNs JoinedReplay::length(const World& world) const {
  if (table_.uses.empty()) return {};
  std::vector<TimePoint> ends;
  run(world, ends);
  return *std::max_element(ends.begin(), ends.end()) - first_;
}

std::vector<DurationNs> JoinedReplay::iteration_ends(const World& world) const {
  std::vector<DurationNs> last(table_.iteration_count());
  std::vector<TimePoint> ends;
  run(world, ends);
  for (std::size_t use = 0; use < ends.size(); ++use) {
    DurationNs& of = last[table_.uses[use].iteration];
    of = std::max(of, ends[use] - first_);
  }
  return last;
}

}  // namespace gpudiag
