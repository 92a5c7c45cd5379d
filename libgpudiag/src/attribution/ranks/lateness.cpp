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
// A piece that stands out alone: among the millions of pieces of a large job none does by chance.
constexpr double kOutlier = 6;

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
    for (const auto& members : roles_.members) measure_role(members);
    measure_steps();
    measure_transfers();
    return std::move(late_);
  }

 private:
  std::size_t first_use(std::size_t rank, std::size_t iteration) const {
    return table_.starts[rank * table_.iteration_count() + iteration];
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

  void measure_role(const std::vector<std::uint32_t>& members) {
    if (members.size() == 1) return measure_alone(members.front());
    // Of each place in the iteration, its noise in the iterations so far, whose median is the noise.
    std::map<std::size_t, std::vector<std::int64_t>> spreads;
    struct Cell {
      std::size_t iteration;
      std::vector<std::uint32_t> ranks;
    };
    std::vector<Cell> cells;
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> middles;
    std::vector<std::int64_t> values;
    std::vector<std::int64_t> scratch;
    for (std::size_t i = 0; i < table_.iteration_count(); ++i) {
      Cell cell{i, comparable(members, i)};
      if (cell.ranks.size() < 2) continue;
      const std::size_t places = table_.uses_of(cell.ranks.front(), i).size();
      for (std::size_t p = 0; p < places; ++p) {
        values.clear();
        for (const std::uint32_t r : cell.ranks)
          if (const JobUse& use = table_.uses[first_use(r, i) + p]; use.base != kNowhere) values.push_back(use.work.ns);
        if (values.size() < 2) continue;
        const std::int64_t middle = ordinary(values);
        middles[{i, p}] = middle;
        if (values.size() > 2) spreads[p].push_back(spread_around(middle, values, scratch));
      }
      cells.push_back(std::move(cell));
    }
    std::map<std::size_t, double> noise;
    for (auto& [place, of] : spreads) noise[place] = kSigmaOfMad * static_cast<double>(median_of(of));
    for (const Cell& cell : cells)
      for (const std::uint32_t r : cell.ranks) {
        const std::size_t first = first_use(r, cell.iteration);
        const std::size_t places = table_.uses_of(r, cell.iteration).size();
        for (std::size_t p = 0; p < places; ++p) {
          const auto middle = middles.find({cell.iteration, p});
          if (middle == middles.end() || table_.uses[first + p].base == kNowhere) continue;
          note(first + p, middle->second, noise[p]);
        }
      }
  }

  // Nobody to be compared with: its own other iterations.
  void measure_alone(std::uint32_t rank) {
    std::map<std::size_t, std::vector<std::int64_t>> history;
    for (std::size_t i = 0; i < table_.iteration_count(); ++i) {
      const auto uses = table_.uses_of(rank, i);
      for (std::size_t p = 0; p < uses.size(); ++p)
        if (uses[p].base != kNowhere) history[p].push_back(uses[p].work.ns);
    }
    std::vector<std::int64_t> scratch;
    std::map<std::size_t, std::pair<std::int64_t, double>> usual;
    for (auto& [place, values] : history) {
      if (values.size() < 3) continue;
      const std::int64_t middle = median_of(values);
      usual[place] = {middle, kSigmaOfMad * static_cast<double>(spread_around(middle, values, scratch))};
    }
    for (std::size_t i = 0; i < table_.iteration_count(); ++i) {
      const std::size_t first = first_use(rank, i);
      for (const auto& [place, of] : usual)
        if (place < table_.uses_of(rank, i).size() && table_.uses[first + place].base != kNowhere)
          note(first + place, of.first, of.second);
    }
  }

  void note(std::size_t id, std::int64_t usual, double noise) {
    const JobUse& use = table_.uses[id];
    noise = std::max({noise, kLeastNoise, kLeastNoiseShare * static_cast<double>(std::max<std::int64_t>(0, usual))});
    const DurationNs excess{use.work.ns - usual};
    late_.excess[id] = excess;
    RankLateness& cell = late_.cells[use.rank * table_.iteration_count() + use.iteration];
    cell.sum += excess;
    cell.noise = std::hypot(cell.noise, noise);
    if (static_cast<double>(excess.ns) > kOutlier * noise) cell.outliers += excess;
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
};

}  // namespace

Lateness measure_lateness(const JobTable& table, const ClockFit& clocks, const Roles& roles, std::size_t ranks) {
  return Meter{table, clocks, roles, ranks}.measure();
}

}  // namespace gpudiag
