// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/clock_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <unordered_map>

namespace gpudiag {
namespace {

std::int64_t median_of(std::vector<std::int64_t>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Ends of these are at one time on all ranks; a root or a sender may be gone before the others.
bool ends_together(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kBarrier: return true;
    default: return false;
  }
}

struct Sample {
  std::int64_t at;
  std::int64_t off;
  std::uint32_t iteration;
};

struct Edge {
  bool together = false;
  std::vector<std::int64_t> differences;
};

class Fitter {
 public:
  Fitter(std::span<const RankSummary> ranks, const JobTable& table) : ranks_{ranks}, table_{table} {}

  ClockFit fit() {
    name_clocks();
    find_first();
    tie();
    for (int round = 0; round < kRounds; ++round) refine(round + 1 == kRounds);
    settle();
    return std::move(fit_);
  }

 private:
  // Drifts of other clocks move the middle that each is compared with; a few rounds settle that.
  static constexpr int kRounds = 4;

  std::size_t iterations() const { return table_.iteration_count(); }

  void name_clocks() {
    std::map<std::string, std::uint32_t> known;
    const std::int64_t first_origin = ranks_.empty() ? 0 : ranks_.front().who.origin_unix_ns;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankIdentity& who = ranks_[r].who;
      const std::string name = who.host.empty() ? "rank " + std::to_string(who.rank) : who.host;
      const auto [found, fresh] = known.try_emplace(name, static_cast<std::uint32_t>(fit_.clocks.size()));
      if (fresh) {
        fit_.clocks.emplace_back();
        fit_.clocks.back().host = name;
      }
      fit_.clock_of.push_back(found->second);
      fit_.origins.push_back({who.origin_unix_ns - first_origin});
    }
    offset_.assign(fit_.clocks.size(), 0);
    slope_.assign(fit_.clocks.size(), 0.0);
  }

  std::int64_t raw_end(const JobUse& use) const { return use.end.ns + fit_.origins[use.rank].ns; }

  std::int64_t end_now(const JobUse& use) const {
    const std::uint32_t clock = fit_.clock_of[use.rank];
    const std::int64_t end = raw_end(use);
    return end - offset_[clock] - std::llround(slope_[clock] * static_cast<double>(end - offset_[clock] - fit_.from.ns));
  }

  void find_first() {
    std::int64_t first = kTimeMax.ns;
    for (const JobUse& use : table_.uses) first = std::min(first, raw_end(use));
    fit_.from = {table_.uses.empty() ? 0 : first};
  }

  // A tree of hosts by what most collectives join, each edge by the median of its differences.
  void tie() {
    std::unordered_map<std::uint64_t, Edge> edges;
    std::vector<std::pair<std::uint32_t, std::int64_t>> ends;  // clock, end
    constexpr std::size_t kOfEdge = 101;
    for (const Match& match : table_.matches) {
      ends_by_clock(match, ends);
      for (std::size_t k = 1; k < ends.size(); ++k) {
        Edge& edge = edges[(std::uint64_t{ends[0].first} << 32) | ends[k].first];
        edge.together = edge.together || ends_together(table_.abouts[match.about].kind);
        if (edge.differences.size() < kOfEdge) edge.differences.push_back(ends[k].second - ends[0].second);
      }
    }
    std::vector<std::pair<std::uint64_t, Edge*>> order;
    for (auto& [key, edge] : edges) order.emplace_back(key, &edge);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::tuple{!a.second->together, b.second->differences.size(), a.first} <
             std::tuple{!b.second->together, a.second->differences.size(), b.first};
    });
    std::vector<std::uint32_t> parent(fit_.clocks.size());
    std::iota(parent.begin(), parent.end(), 0u);
    const auto root = [&](std::uint32_t c) {
      while (parent[c] != c) c = parent[c] = parent[parent[c]];
      return c;
    };
    std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>> tree(fit_.clocks.size());
    for (const auto& [key, edge] : order) {
      const auto a = static_cast<std::uint32_t>(key >> 32);
      const auto b = static_cast<std::uint32_t>(key);
      if (root(a) == root(b)) continue;
      parent[root(a)] = root(b);
      const std::int64_t apart = median_of(edge->differences);
      tree[a].emplace_back(b, apart);
      tree[b].emplace_back(a, -apart);
    }
    walk(tree);
  }

  void walk(const std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>>& tree) {
    std::vector<bool> seen(fit_.clocks.size(), false);
    for (std::uint32_t start = 0; start < fit_.clocks.size(); ++start) {
      if (seen[start]) continue;
      std::vector<std::uint32_t> open{start};
      seen[start] = true;
      while (!open.empty()) {
        const std::uint32_t at = open.back();
        open.pop_back();
        fit_.clocks[at].tied = start == 0;
        for (const auto& [next, apart] : tree[at]) {
          if (seen[next]) continue;
          seen[next] = true;
          offset_[next] = offset_[at] + apart;
          open.push_back(next);
        }
      }
    }
  }

  // The median of each host's ranks.
  void ends_by_clock(const Match& match, std::vector<std::pair<std::uint32_t, std::int64_t>>& ends) const {
    ends.clear();
    for (const std::uint32_t id : table_.members_of(match)) {
      const JobUse& use = table_.uses[id];
      ends.emplace_back(fit_.clock_of[use.rank], raw_end(use));
    }
    std::sort(ends.begin(), ends.end());
    std::size_t kept = 0;
    for (std::size_t from = 0; from < ends.size();) {
      std::size_t to = from;
      while (to < ends.size() && ends[to].first == ends[from].first) ++to;
      ends[kept++] = ends[from + (to - from) / 2];
      from = to;
    }
    ends.resize(kept);
  }

  void gather(std::vector<std::vector<Sample>>& samples, bool together) const {
    std::vector<std::int64_t> ends;
    // Some hundred samples of a clock say all; which ones are taken must not follow the job's own rhythm.
    constexpr std::size_t kOfClock = 1'000;
    const std::size_t one_of = table_.uses.size() / (kOfClock * std::max<std::size_t>(1, fit_.clocks.size())) + 1;
    for (std::uint32_t m = 0; m < table_.matches.size(); ++m) {
      const Match& match = table_.matches[m];
      if (one_of > 1 && (m * 2'654'435'761u >> 8) % one_of != 0) continue;
      if (ends_together(table_.abouts[match.about].kind) != together) continue;
      const auto members = table_.members_of(match);
      const std::uint32_t first = fit_.clock_of[table_.uses[members[0]].rank];
      if (std::all_of(members.begin(), members.end(),
                      [&](std::uint32_t id) { return fit_.clock_of[table_.uses[id].rank] == first; }))
        continue;
      ends.clear();
      for (const std::uint32_t id : members) ends.push_back(end_now(table_.uses[id]));
      // Of an even number between the middle two: of two clocks each is off by half, not one by all.
      std::sort(ends.begin(), ends.end());
      const std::size_t half = ends.size() / 2;
      const std::int64_t middle = ends.size() % 2 == 1 ? ends[half] : ends[half - 1] + (ends[half] - ends[half - 1]) / 2;
      for (const std::uint32_t id : members) {
        const JobUse& use = table_.uses[id];
        const std::int64_t end = end_now(use);
        samples[fit_.clock_of[use.rank]].push_back({end, end - middle, match.iteration});
      }
    }
  }

  void refine(bool last) {
    std::vector<std::vector<Sample>> samples(fit_.clocks.size());
    gather(samples, true);
    std::vector<std::vector<Sample>> others(fit_.clocks.size());
    gather(others, false);
    for (std::size_t c = 0; c < samples.size(); ++c) {
      if (samples[c].size() < 3) samples[c].insert(samples[c].end(), others[c].begin(), others[c].end());
      if (samples[c].empty()) continue;
      if (last) judge(static_cast<std::uint32_t>(c), samples[c]);
      else move(static_cast<std::uint32_t>(c), samples[c]);
    }
  }

  // Offset by the median, slope between the medians of the first and the last third.
  void move(std::uint32_t clock, std::vector<Sample>& samples) {
    std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.at < b.at; });
    const auto medians = [&](std::size_t from, std::size_t to) {
      std::vector<std::int64_t> at;
      std::vector<std::int64_t> off;
      for (std::size_t k = from; k < to; ++k) {
        at.push_back(samples[k].at);
        off.push_back(samples[k].off);
      }
      return std::pair{median_of(at), median_of(off)};
    };
    const std::size_t third = samples.size() / 3;
    double slope = 0;
    if (third >= 2) {
      const auto early = medians(0, third);
      const auto late = medians(samples.size() - third, samples.size());
      const double time = static_cast<double>(late.first - early.first);
      if (time > 0) slope = static_cast<double>(late.second - early.second) / time;
      // No quartz is off by more; what is, is a jump.
      constexpr double kFastest = 200e-6;
      if (std::abs(slope) > kFastest) slope = 0;
    }
    std::vector<std::int64_t> rest;
    for (const Sample& sample : samples)
      rest.push_back(sample.off - std::llround(slope * static_cast<double>(sample.at - fit_.from.ns)));
    offset_[clock] += median_of(rest);
    slope_[clock] += slope;
  }

  // What a line leaves over, iteration by iteration: a clock that was set shows there.
  void judge(std::uint32_t clock, const std::vector<Sample>& samples) {
    std::map<std::uint32_t, std::vector<std::int64_t>> by_iteration;
    std::vector<std::int64_t> sizes;
    for (const Sample& sample : samples) {
      by_iteration[sample.iteration].push_back(sample.off);
      sizes.push_back(std::llabs(sample.off));
    }
    HostClock& host = fit_.clocks[clock];
    host.scatter = {median_of(sizes)};
    std::map<std::uint32_t, std::int64_t> middles;
    for (auto& [iteration, offs] : by_iteration) middles[iteration] = median_of(offs);
    // Below a millisecond a jump is no trouble to tell from noise.
    constexpr std::int64_t kJump = 1'000'000;
    std::int64_t least = middles.begin()->second;
    std::int64_t most = least;
    for (const auto& [iteration, off] : middles) {
      least = std::min(least, off);
      most = std::max(most, off);
    }
    if (most - least < kJump) return;
    host.jumped = true;
    const std::int64_t first = middles.begin()->second;
    for (const auto& [iteration, off] : middles) {
      if (std::llabs(off - first) < kJump / 2) continue;
      host.jumped_at = table_.indices[iteration];
      host.jump = {off - first};
      break;
    }
    if (fit_.steps.empty()) fit_.steps.resize(fit_.clocks.size() * iterations());
    std::int64_t now = first;
    for (std::uint32_t i = 0; i < iterations(); ++i) {
      if (const auto found = middles.find(i); found != middles.end()) now = found->second;
      fit_.steps[clock * iterations() + i] = {now};
    }
  }

  void settle() {
    for (std::size_t c = 0; c < fit_.clocks.size(); ++c) {
      fit_.clocks[c].offset = {offset_[c]};
      fit_.clocks[c].drift_ppm = slope_[c] * 1e6;
    }
  }

  std::span<const RankSummary> ranks_;
  const JobTable& table_;
  ClockFit fit_;
  std::vector<std::int64_t> offset_;
  std::vector<double> slope_;
};

}  // namespace

TimePoint ClockFit::aligned(std::size_t rank, std::size_t iteration, std::size_t iterations, TimePoint time) const {
  const std::uint32_t clock = clock_of[rank];
  const std::int64_t moved = time.ns + origins[rank].ns - clocks[clock].offset.ns;
  std::int64_t out = moved - std::llround(clocks[clock].drift_ppm * 1e-6 * static_cast<double>(moved - from.ns));
  if (!steps.empty()) out -= steps[clock * iterations + iteration].ns;
  return {out};
}

ClockFit fit_clocks(std::span<const RankSummary> ranks, const JobTable& table) { return Fitter{ranks, table}.fit(); }

void align(JobTable& table, const ClockFit& fit) {
  const std::size_t n = table.iteration_count();
  for (JobUse& use : table.uses) {
    use.arrival = fit.aligned(use.rank, use.iteration, n, use.arrival);
    use.end = fit.aligned(use.rank, use.iteration, n, use.end);
  }
  // Between the two a clock may have been set.
  for (JobUse& use : table.uses)
    if (use.base != kNowhere) use.work = use.arrival - table.uses[use.base].end;
}

}  // namespace gpudiag
