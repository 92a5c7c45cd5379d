// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/lateness.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

namespace gpudiag {
namespace {

// Of a normal distribution, the standard deviation over the median distance from the median.
constexpr double kSigmaOfMad = 1.4826;
// Time stamps and launches scatter by this much whatever the work.
constexpr double kLeastNoise = 2'000;
constexpr double kLeastNoiseShare = 0.001;

std::int64_t median_of(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What is ordinary: of two the quicker one, of one nobody knows.
std::int64_t ordinary(std::vector<std::int64_t>& values) {
  if (values.size() == 2) return std::min(values[0], values[1]);
  return median_of(values);
}

std::int64_t spread_around(std::int64_t middle, const std::vector<std::int64_t>& values,
                           std::vector<std::int64_t>& scratch) {
  scratch.clear();
  for (const std::int64_t value : values) scratch.push_back(std::llabs(value - middle));
  return median_of(scratch);
}

class Meter {
 public:
  Meter(const JobTable& table, const ClockFit& clocks, const Roles& roles, std::size_t ranks)
      : table_{table}, clocks_{clocks}, roles_{roles}, ranks_{ranks} {}

  Lateness measure() {
    const std::size_t n = table_.iteration_count();
    late_.excess.resize(table_.uses.size());
    late_.cells.resize(ranks_ * n);
    late_.step.resize(n);
    own_.assign(table_.uses.size(), kUnknown);
    length_.assign(ranks_ * n, kUnknown);
    carried_.assign(ranks_, 0);
    for (std::size_t r = 0; r < ranks_; ++r) measure_own(r);
    behind_.assign(table_.uses.size(), kUnknown);
    for (const auto& members : roles_.members) {
      if (members.size() == 1) measure_alone(members.front());
      else measure_role(members);
    }
    for (std::size_t r = 0; r < ranks_; ++r) spread_over_works(r);
    measure_steps();
    measure_transfers();
    return std::move(late_);
  }

 private:
  static constexpr std::int64_t kUnknown = kTimeMin.ns;

  std::size_t first_use(std::size_t rank, std::size_t iteration) const {
    return table_.starts[rank * table_.iteration_count() + iteration];
  }

  // By use, the rank's own time since the iteration's start: time in which it did not wait. When it was
  // ready for a queued use nobody knows, but not later than this.
  void measure_own(std::size_t rank) {
    const std::size_t n = table_.iteration_count();
    const std::size_t begin = first_use(rank, 0);
    const std::size_t end = table_.starts[(rank + 1) * n];
    waits_.clear();
    for (std::size_t k = begin; k < end; ++k) {
      const JobUse& use = table_.uses[k];
      if (use.exposed.ns > 0) waits_.push_back({use.end - use.exposed, use.end});
    }
    std::sort(waits_.begin(), waits_.end(), [](Interval a, Interval b) { return a.start < b.start; });
    waited_.assign(1, 0);
    std::size_t kept = 0;
    for (const Interval& next : waits_) {
      if (kept > 0 && next.start <= waits_[kept - 1].end) waits_[kept - 1].end = std::max(waits_[kept - 1].end, next.end);
      else waits_[kept++] = next;
    }
    waits_.resize(kept);
    for (const Interval& wait : waits_) waited_.push_back(waited_.back() + wait.length().ns);
    // From the iteration's start where the ledger has one, which is the same operation's end on all ranks of
    // a role; else from the last use of the iteration before.
    std::int64_t anchor = kUnknown;
    for (std::size_t i = 0; i < n; ++i) {
      const RankIteration* iteration = table_.iteration_of(rank, i);
      if (iteration != nullptr && iteration->wall.ns > 0) {
        anchor = own_until(clocks_.aligned(rank, i, n, iteration->start));
        length_[rank * n + i] = own_until(clocks_.aligned(rank, i, n, iteration->end())) - anchor;
      }
      std::int64_t next_anchor = kUnknown;
      for (std::size_t k = first_use(rank, i); k < first_use(rank, i) + table_.uses_of(rank, i).size(); ++k) {
        next_anchor = own_until(table_.uses[k].arrival);
        if (anchor != kUnknown) own_[k] = next_anchor - anchor;
      }
      anchor = next_anchor;
    }
  }

  std::int64_t own_until(TimePoint t) const {
    const auto after = std::upper_bound(waits_.begin(), waits_.end(), t, [](TimePoint at, const Interval& wait) { return at < wait.start; });
    const auto passed = static_cast<std::size_t>(after - waits_.begin());
    std::int64_t waited = waited_[passed];
    if (passed > 0 && waits_[passed - 1].end > t) waited -= (waits_[passed - 1].end - t).ns;
    return t.ns - waited;
  }

  /// Ranks of the role whose uses in the iteration are those of most of them.
  std::vector<std::uint32_t> comparable(const std::vector<std::uint32_t>& members, std::size_t iteration) const {
    std::map<std::size_t, std::size_t> lengths;
    for (const std::uint32_t r : members) ++lengths[table_.uses_of(r, iteration).size()];
    std::size_t usual = 0;
    std::size_t most = 0;
    for (const auto& [length, count] : lengths)
      if (length > 0 && count >= most) std::tie(usual, most) = std::pair{length, count};
    std::vector<std::uint32_t> ranks;
    for (const std::uint32_t r : members)
      if (usual > 0 && table_.uses_of(r, iteration).size() == usual) ranks.push_back(r);
    return ranks;
  }

  // Of those that were not queued. Where most were, theirs is the most that the others needed.
  void gather(const std::vector<std::uint32_t>& ranks, std::size_t iteration, std::size_t place,
              std::vector<std::int64_t>& values) const {
    const auto take = [&](bool queued_too) {
      values.clear();
      for (const std::uint32_t r : ranks) {
        const std::size_t k = first_use(r, iteration) + place;
        if (own_[k] != kUnknown && (queued_too || !table_.uses[k].queued)) values.push_back(own_[k]);
      }
    };
    take(false);
    if (values.size() * 2 <= ranks.size()) take(true);
  }

  // What a rank fell behind by after the last use of an iteration shows at the first of the next one.
  void add_tails(const std::vector<std::uint32_t>& ranks, std::size_t iteration) {
    const std::size_t n = table_.iteration_count();
    std::vector<std::int64_t> lengths;
    for (const std::uint32_t r : ranks)
      if (const std::int64_t length = length_[r * n + iteration - 1]; length != kUnknown) lengths.push_back(length);
    if (lengths.size() * 2 < ranks.size() || lengths.size() < 2) return;
    const std::int64_t usual = ordinary(lengths);
    for (const std::uint32_t r : ranks) {
      const std::int64_t length = length_[r * n + iteration - 1];
      if (length == kUnknown) continue;
      std::int64_t known = carried_[r];
      for (std::size_t k = first_use(r, iteration - 1); k < first_use(r, iteration - 1) + table_.uses_of(r, iteration - 1).size(); ++k)
        if (behind_[k] != kUnknown) known = behind_[k];
      const std::int64_t tail = length - usual - (known - carried_[r]);
      carried_[r] = tail;
      for (std::size_t k = first_use(r, iteration); k < first_use(r, iteration) + table_.uses_of(r, iteration).size(); ++k)
        if (own_[k] != kUnknown) own_[k] += tail;
    }
  }

  void measure_role(const std::vector<std::uint32_t>& members) {
    // Of each place in the iteration its scatter, iteration by iteration; the median is the noise.
    std::map<std::size_t, std::vector<std::int64_t>> spreads;
    std::vector<std::vector<std::uint32_t>> compared(table_.iteration_count());
    std::vector<std::vector<std::int64_t>> middles(table_.iteration_count());
    std::vector<std::int64_t> values;
    std::vector<std::int64_t> scratch;
    for (std::size_t i = 0; i < table_.iteration_count(); ++i) {
      compared[i] = comparable(members, i);
      if (compared[i].size() < 2) continue;
      if (i > 0) add_tails(compared[i], i);
      const std::size_t places = table_.uses_of(compared[i].front(), i).size();
      middles[i].assign(places, kUnknown);
      for (std::size_t p = 0; p < places; ++p) {
        gather(compared[i], i, p, values);
        if (values.size() < 2) continue;
        const std::int64_t middle = middles[i][p] = ordinary(values);
        if (values.size() > 2) spreads[p].push_back(spread_around(middle, values, scratch));
        for (const std::uint32_t r : compared[i]) {
          const std::size_t k = first_use(r, i) + p;
          if (own_[k] != kUnknown && !table_.uses[k].queued) behind_[k] = own_[k] - middle;
        }
      }
    }
    std::vector<double> noise;
    for (auto& [place, of] : spreads) {
      noise.resize(std::max(noise.size(), place + 1), 0.0);
      noise[place] = kSigmaOfMad * static_cast<double>(median_of(of));
    }
    for (const auto& of_iteration : middles) noise.resize(std::max(noise.size(), of_iteration.size()), 0.0);
    for (std::size_t i = 0; i < compared.size(); ++i)
      for (std::size_t p = 0; p < middles[i].size(); ++p) {
        if (middles[i][p] == kUnknown) continue;
        for (const std::uint32_t r : compared[i]) note(first_use(r, i) + p, middles[i][p], noise[p]);
      }
  }

  // Nobody to be compared with: its own other iterations.
  void measure_alone(std::uint32_t rank) {
    std::map<std::size_t, std::vector<std::int64_t>> history;
    for (std::size_t i = 0; i < table_.iteration_count(); ++i)
      for (std::size_t p = 0; p < table_.uses_of(rank, i).size(); ++p)
        if (const std::int64_t own = own_[first_use(rank, i) + p]; own != kUnknown) history[p].push_back(own);
    std::vector<std::int64_t> scratch;
    for (auto& [place, values] : history) {
      if (values.size() < 3) continue;
      const std::int64_t middle = median_of(values);
      const double noise = kSigmaOfMad * static_cast<double>(spread_around(middle, values, scratch));
      for (std::size_t i = 0; i < table_.iteration_count(); ++i)
        if (place < table_.uses_of(rank, i).size()) note(first_use(rank, i) + place, middle, noise);
    }
  }

  void note(std::size_t id, std::int64_t usual, double noise) {
    if (own_[id] == kUnknown || table_.uses[id].queued) return;
    const JobUse& use = table_.uses[id];
    noise = std::max({noise, kLeastNoise, kLeastNoiseShare * static_cast<double>(std::max<std::int64_t>(0, usual))});
    behind_[id] = own_[id] - usual;
    RankLateness& cell = late_.cells[use.rank * table_.iteration_count() + use.iteration];
    if (cell.noise > 0 && behind_[id] <= cell.most.ns) return;
    cell.most = {behind_[id]};
    cell.noise = noise;
  }

  // Between what it last waited for and a use a rank fell behind by the difference of the two.
  void spread_over_works(std::size_t rank) {
    const std::size_t n = table_.iteration_count();
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t first = first_use(rank, i);
      const std::size_t count = table_.uses_of(rank, i).size();
      for (std::size_t k = first; k < first + count; ++k) {
        const JobUse& use = table_.uses[k];
        if (use.base == kNowhere || behind_[k] == kUnknown) continue;
        std::int64_t before = 0;
        if (use.base >= first)  // what it was behind by when it went on from there
          for (std::size_t b = first; b < k && table_.uses[b].arrival < table_.uses[use.base].end; ++b)
            if (behind_[b] != kUnknown) before = behind_[b];
        late_.excess[k] = {behind_[k] - before};
      }
    }
  }

  // From the last end of one iteration's uses to that of the next where there is one before; else the
  // ledger's wall.
  void measure_steps() {
    const std::size_t n = table_.iteration_count();
    std::vector<std::int64_t> walls;
    for (std::size_t i = 0; i < n; ++i) {
      walls.clear();
      for (std::size_t r = 0; r < ranks_; ++r)
        if (const RankIteration* iteration = table_.iteration_of(r, i); iteration != nullptr && iteration->wall.ns > 0)
          walls.push_back(iteration->wall.ns);
      if (!walls.empty()) late_.step[i] = {median_of(walls)};
    }
  }

  bool crosses_hosts(const Match& match) const {
    const auto members = table_.members_of(match);
    const std::uint32_t first = clocks_.clock_of[table_.uses[members[0]].rank];
    return std::any_of(members.begin(), members.end(),
                       [&](std::uint32_t id) { return clocks_.clock_of[table_.uses[id].rank] != first; });
  }

  void measure_transfers() {
    late_.transfer.resize(table_.matches.size());
    late_.slower.resize(table_.matches.size());
    late_.transfer_noise.resize(table_.matches.size(), kLeastNoise);
    // Alike: the same operation over the same kind of link, by iteration.
    std::map<std::tuple<std::uint32_t, bool, std::uint32_t>, std::vector<std::uint32_t>> alike;
    std::map<std::pair<std::uint32_t, bool>, std::vector<std::uint32_t>> ever;
    std::vector<std::int64_t> values;
    for (std::uint32_t m = 0; m < table_.matches.size(); ++m) {
      const Match& match = table_.matches[m];
      TimePoint last = kTimeMin;
      values.clear();
      for (const std::uint32_t id : table_.members_of(match)) {
        last = std::max(last, table_.uses[id].arrival);
        values.push_back(table_.uses[id].end.ns);
      }
      late_.transfer[m] = {std::max<std::int64_t>(0, median_of(values) - last.ns)};
      const bool across = crosses_hosts(match);
      alike[{match.about, across, match.iteration}].push_back(m);
      ever[{match.about, across}].push_back(m);
    }
    for (const auto& [key, matches] : alike) {
      std::vector<std::uint32_t> groups;
      for (const std::uint32_t m : matches) groups.push_back(table_.matches[m].group);
      std::sort(groups.begin(), groups.end());
      groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
      const bool enough = groups.size() >= 4;
      compare_transfers(enough ? matches : ever[{std::get<0>(key), std::get<1>(key)}], matches);
    }
  }

  void compare_transfers(const std::vector<std::uint32_t>& with, const std::vector<std::uint32_t>& of) {
    std::vector<std::int64_t> values;
    std::vector<std::int64_t> scratch;
    for (const std::uint32_t m : with) values.push_back(late_.transfer[m].ns);
    if (values.size() < 3) return;
    const std::int64_t middle = median_of(values);
    const double noise = std::max({kLeastNoise, kSigmaOfMad * static_cast<double>(spread_around(middle, values, scratch)),
                                   kLeastNoiseShare * static_cast<double>(middle)});
    for (const std::uint32_t m : of) {
      late_.slower[m] = {late_.transfer[m].ns - middle};
      late_.transfer_noise[m] = noise;
    }
  }

  const JobTable& table_;
  const ClockFit& clocks_;
  const Roles& roles_;
  std::size_t ranks_;
  Lateness late_;
  std::vector<std::int64_t> own_;     // by use
  std::vector<std::int64_t> length_;  // own time of [rank * iterations + iteration]
  std::vector<std::int64_t> behind_;  // by use
  std::vector<std::int64_t> carried_; // by rank, into the iteration in hand
  std::vector<Interval> waits_;       // of the rank in hand
  std::vector<std::int64_t> waited_;  // before each of them
};

}  // namespace

Lateness measure_lateness(const JobTable& table, const ClockFit& clocks, const Roles& roles, std::size_t ranks) {
  return Meter{table, clocks, roles, ranks}.measure();
}

}  // namespace gpudiag
