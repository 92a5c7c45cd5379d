// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/culprits.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "attribution/ranks/bandwidth.hpp"
#include "attribution/ranks/late_cells.hpp"

namespace gpudiag {
namespace {

/// Of the job's time; as for findings on one rank.
constexpr double kLeastCostShare = 0.02;
/// Of what all late ranks cost: who is named must account for so much.
constexpr double kExplained = 0.8;
constexpr std::size_t kMostNamed = 64;

double share_of(DurationNs part, DurationNs whole) {
  return whole.ns > 0 ? static_cast<double>(part.ns) / static_cast<double>(whole.ns) : 0.0;
}

DurationNs median_of(std::vector<std::int64_t> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return {*middle};
}

class Search {
 public:
  Search(std::span<const RankSummary> ranks, const JobTable& table, const ClockFit& clocks, const Roles& roles,
         const Lateness& lateness)
      : ranks_{ranks}, table_{table}, clocks_{clocks}, roles_{roles}, lateness_{lateness},
        replay_{table, lateness}, n_{table.iteration_count()} {}

  Blame find() {
    blame_.what_if.recorded = blame_.what_if.without_culprits = blame_.what_if.ideal = replay_.recorded();
    if (table_.matches.empty()) return std::move(blame_);
    cells_ = find_late_cells(table_, lateness_, ranks_.size());
    blame_ranks();
    blame_links();
    blame_stages();
    finish();
    return std::move(blame_);
  }

 private:
  // --- ranks that are late by their own work -------------------------------------------------------

  World without(const std::vector<bool>& ranks) const {
    return {[this, &ranks](std::uint32_t id) {
              const JobUse& use = table_.uses[id];
              if (!ranks[use.rank] || cells_.late[use.rank * n_ + use.iteration].ns == 0) return DurationNs{};
              return lateness_.excess[id];
            },
            {}};
  }

  DurationNs saved_by(const std::vector<bool>& ranks) const { return replay_.recorded() - replay_.length(without(ranks)); }

  std::vector<bool> first_late(std::size_t count) const {
    std::vector<bool> chosen(ranks_.size(), false);
    for (std::size_t k = 0; k < count && k < cells_.ranks.size(); ++k) chosen[cells_.ranks[k].second] = true;
    return chosen;
  }

  void blame_ranks() {
    if (cells_.ranks.empty()) return;
    const DurationNs all = saved_by(first_late(cells_.ranks.size()));
    if (share_of(all, replay_.recorded()) < kLeastCostShare) return;
    const auto explained = [&](std::size_t count) {
      return static_cast<double>(saved_by(first_late(count)).ns) >= kExplained * static_cast<double>(all.ns);
    };
    std::size_t enough = 1;
    while (enough < cells_.ranks.size() && !explained(enough)) enough *= 2;
    enough = std::min(enough, cells_.ranks.size());
    for (std::size_t low = enough / 2; low + 1 < enough;) {
      const std::size_t middle = low + (enough - low) / 2;
      (explained(middle) ? enough : low) = middle;
    }
    std::vector<std::uint32_t> guilty;
    for (std::size_t k = 0; k < enough; ++k) guilty.push_back(cells_.ranks[k].second);
    drop_hidden(guilty, all);
    if (guilty.size() > 1 && goes_round(guilty)) add_rest_of_round(guilty);
    name_ranks(guilty);
  }

  // Who is late and always hidden behind somebody later costs nothing.
  void drop_hidden(std::vector<std::uint32_t>& guilty, DurationNs all) const {
    if (guilty.size() < 2 || guilty.size() > 8) return;
    for (std::size_t k = guilty.size(); k-- > 0 && guilty.size() > 1;) {
      std::vector<bool> rest(ranks_.size(), false);
      for (const std::uint32_t r : guilty) rest[r] = r != guilty[k];
      if (static_cast<double>(saved_by(rest).ns) >= kExplained * static_cast<double>(all.ns))
        guilty.erase(guilty.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }

  std::vector<std::size_t> late_iterations(const std::vector<std::uint32_t>& ranks) const {
    std::vector<std::size_t> late;
    for (std::size_t i = 0; i < n_; ++i)
      if (std::any_of(ranks.begin(), ranks.end(), [&](std::uint32_t r) { return cells_.late[r * n_ + i].ns > 0; }))
        late.push_back(i);
    return late;
  }

  std::size_t seen_iterations(std::uint32_t rank) const {
    std::size_t seen = 0;
    for (std::size_t i = 0; i < n_; ++i) seen += is_comparable(table_.iteration_of(rank, i)) ? 1 : 0;
    return seen;
  }

  bool on_one_host(const std::vector<std::uint32_t>& ranks) const {
    if (ranks_[ranks.front()].who.host.empty()) return false;
    const std::uint32_t clock = clocks_.clock_of[ranks.front()];
    std::size_t of_host = 0;
    for (const std::uint32_t c : clocks_.clock_of) of_host += c == clock ? 1 : 0;
    return ranks.size() * 2 >= of_host &&
           std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t r) { return clocks_.clock_of[r] == clock; });
  }

  // Each at another time, none often: it goes round.
  bool goes_round(const std::vector<std::uint32_t>& ranks) const {
    std::size_t all = 0;
    for (const std::uint32_t r : ranks) {
      const std::size_t own = late_iterations({r}).size();
      if (own * 2 > seen_iterations(r)) return false;
      all += own;
    }
    return all * 2 <= late_iterations(ranks).size() * 3;
  }

  // Whose turn cost little for once is one of them nevertheless.
  void add_rest_of_round(std::vector<std::uint32_t>& guilty) const {
    const DurationNs usual = cells_.ranks[guilty.size() / 2].first;
    for (std::size_t k = guilty.size(); k < cells_.ranks.size() && cells_.ranks[k].first.ns * 3 >= usual.ns; ++k) {
      guilty.push_back(cells_.ranks[k].second);
      if (goes_round(guilty)) continue;
      guilty.pop_back();
      return;
    }
  }

  void name_ranks(const std::vector<std::uint32_t>& guilty) {
    if (guilty.size() > 1 && (on_one_host(guilty) || goes_round(guilty))) {
      Culprit one = make_culprit(guilty);
      if (on_one_host(guilty)) one.host = ranks_[guilty.front()].who.host;
      else one.pattern = LatePattern::kRotating;
      blame_.culprits.push_back(std::move(one));
      return;
    }
    for (std::size_t k = 0; k < guilty.size() && k < kMostNamed; ++k) {
      Culprit one = make_culprit({guilty[k]});
      // One of several that hide each other costs nothing alone: it is named with what all cost.
      if (one.share < kLeastCostShare / 2) {
        blame_.culprits.push_back(make_culprit(guilty));
        return;
      }
      blame_.culprits.push_back(std::move(one));
    }
  }

  Culprit make_culprit(const std::vector<std::uint32_t>& ranks) {
    Culprit culprit;
    std::vector<bool> chosen(ranks_.size(), false);
    for (const std::uint32_t r : ranks) {
      chosen[r] = true;
      if (culprit.ranks.size() < kMostNamed) culprit.ranks.push_back(ranks_[r].who.rank);
    }
    const DurationNs saved = saved_by(chosen);
    set_cost(culprit, saved);
    const auto late = late_iterations(ranks);
    std::vector<std::int64_t> times;
    for (const std::size_t i : late) {
      DurationNs most;
      for (const std::uint32_t r : ranks) most = std::max(most, cells_.late[r * n_ + i]);
      times.push_back(most.ns);
      culprit.iterations.push_back(table_.indices[i]);
    }
    culprit.late = median_of(times);
    culprit.iterations_seen = seen_iterations(ranks.front());
    const PatternOf pattern = pattern_of(late, culprit.iterations_seen);
    culprit.pattern = pattern.pattern;
    culprit.period = pattern.period;
    find_cause(culprit, ranks);
    return culprit;
  }

  void set_cost(Culprit& culprit, DurationNs saved) const {
    culprit.share = share_of(saved, replay_.recorded());
    if (n_ > 0) culprit.cost_per_iteration = {saved.ns / static_cast<std::int64_t>(n_)};
  }

  /// Compute, copy, then the causes of idle time.
  using Kinds = std::array<std::int64_t, kCauseCount + 2>;

  static Kinds kinds_of(const RankIteration& iteration) {
    Kinds kinds{iteration.compute.ns, iteration.copy.ns};
    for (std::size_t c = 0; c < kCauseCount; ++c) kinds[c + 2] = iteration.idle_by_cause[c].ns;
    return kinds;
  }

  // What its own ledger has more of than those of its role in the iterations in which it was late.
  void find_cause(Culprit& culprit, const std::vector<std::uint32_t>& ranks) const {
    Kinds more{};
    std::int64_t late = 0;
    std::map<std::pair<Cause, SubCause>, std::int64_t> subs;
    for (const std::uint32_t r : ranks)
      for (std::size_t i = 0; i < n_; ++i) {
        if (cells_.late[r * n_ + i].ns == 0) continue;
        const RankIteration* own = table_.iteration_of(r, i);
        const Kinds usual = usual_kinds(r, i);
        const Kinds kinds = kinds_of(*own);
        for (std::size_t k = 0; k < kinds.size(); ++k) more[k] += kinds[k] - usual[k];
        late += cells_.late[r * n_ + i].ns;
        for (std::size_t c = 0; c < kCauseCount; ++c)
          subs[{static_cast<Cause>(c), own->sub_causes[c]}] += own->idle_by_cause[c].ns;
      }
    // These two are what a late peer does to it.
    more[2 + static_cast<std::size_t>(Cause::kCommunicationWait)] = 0;
    more[2 + static_cast<std::size_t>(Cause::kDependency)] /= 2;
    const auto most = static_cast<std::size_t>(std::max_element(more.begin(), more.end()) - more.begin());
    if (more[most] * 4 < late) return;  // its ledger does not say
    if (most == 0) culprit.kind = CulpritKind::kCompute;
    else if (most == 1) culprit.kind = CulpritKind::kCopy;
    else {
      culprit.cause = static_cast<Cause>(most - 2);
      culprit.kind = culprit.cause == Cause::kDataLoading ? CulpritKind::kData : CulpritKind::kHost;
      std::int64_t best = 0;
      for (const auto& [which, time] : subs)
        if (which.first == culprit.cause && time > best) std::tie(best, culprit.sub_cause) = std::pair{time, which.second};
    }
  }

  // The medians of the role in that iteration; of at most so many of its ranks, for roles may be large.
  Kinds usual_kinds(std::uint32_t rank, std::size_t iteration) const {
    constexpr std::size_t kAsked = 255;
    std::array<std::vector<std::int64_t>, kCauseCount + 2> values;
    const std::uint32_t role = roles_.of[rank];
    Kinds usual{};
    if (role == kNowhere) return usual;
    const auto& members = roles_.members[role];
    const std::size_t stride = members.size() / kAsked + 1;
    const auto take = [&](const RankIteration* other) {
      if (other == nullptr) return;
      const Kinds kinds = kinds_of(*other);
      for (std::size_t k = 0; k < kinds.size(); ++k) values[k].push_back(kinds[k]);
    };
    for (std::size_t k = 0; k < members.size(); k += stride)
      if (members[k] != rank) take(table_.iteration_of(members[k], iteration));
    if (values[0].empty())  // alone in its role: its other iterations
      for (std::size_t i = 0; i < n_; ++i)
        if (i != iteration) take(table_.iteration_of(rank, i));
    for (std::size_t k = 0; k < usual.size(); ++k) usual[k] = median_of(values[k]).ns;
    return usual;
  }

  // --- links ---------------------------------------------------------------------------------------

  bool is_slow(std::uint32_t m) const {
    const double slower = static_cast<double>(lateness_.slower[m].ns);
    const Match& match = table_.matches[m];
    return slower > 6 * lateness_.transfer_noise[m] && slower * 10 > static_cast<double>((lateness_.transfer[m] - lateness_.slower[m]).ns) &&
           slower > 0.001 * static_cast<double>(lateness_.step[match.iteration].ns);
  }

  DurationNs saved_on(const std::vector<bool>& slow) const {
    const World world{{}, [&](std::uint32_t m) { return slow[m] ? lateness_.slower[m] : DurationNs{}; }};
    return replay_.recorded() - replay_.length(world);
  }

  void blame_links() {
    std::vector<bool> slow(table_.matches.size(), false);
    bool any = false;
    for (std::uint32_t m = 0; m < slow.size(); ++m) any = (slow[m] = is_slow(m)) || any;
    if (!any) return;
    const DurationNs saved = saved_on(slow);
    if (share_of(saved, replay_.recorded()) < kLeastCostShare) return;
    Culprit culprit;
    culprit.kind = CulpritKind::kNetwork;
    set_cost(culprit, saved);
    const std::vector<std::uint32_t> ends = ends_of(slow);
    culprit.whole_job = ends.size() == ranks_.size();
    for (std::size_t k = 0; k < ends.size() && k < kMostNamed; ++k) culprit.ranks.push_back(ranks_[ends[k]].who.rank);
    if (ends.size() > 1 && !culprit.whole_job && on_one_host(ends)) culprit.host = ranks_[ends.front()].who.host;
    describe_link(culprit, slow, ends);
    blame_.culprits.push_back(std::move(culprit));
  }

  // The ranks that all kinds of slow collectives have in common: of each kind that a rank takes part in,
  // how many are slow. Who merely shares a group with the guilty one has other groups that are not.
  std::vector<std::uint32_t> ends_of(const std::vector<bool>& slow) const {
    struct Seen {
      std::uint32_t all = 0;
      std::uint32_t slow = 0;
    };
    std::vector<std::map<std::uint32_t, Seen>> seen(ranks_.size());
    for (std::uint32_t m = 0; m < slow.size(); ++m)
      for (const std::uint32_t id : table_.members_of(table_.matches[m])) {
        Seen& of = seen[table_.uses[id].rank][table_.matches[m].about];
        ++of.all;
        of.slow += slow[m] ? 1 : 0;
      }
    std::vector<double> score(ranks_.size(), 0);
    for (std::size_t r = 0; r < score.size(); ++r)
      for (const auto& [about, of] : seen[r]) score[r] += static_cast<double>(of.slow) / of.all;
    const double most = *std::max_element(score.begin(), score.end());
    std::vector<std::uint32_t> ends;
    for (std::uint32_t r = 0; r < score.size(); ++r)
      if (score[r] >= 0.9 * most) ends.push_back(r);
    return ends;
  }

  void describe_link(Culprit& culprit, const std::vector<bool>& slow, const std::vector<std::uint32_t>& ends) {
    std::vector<bool> at_end(ranks_.size(), false);
    for (const std::uint32_t r : ends) at_end[r] = true;
    std::map<std::size_t, std::int64_t> by_iteration;
    std::map<std::uint32_t, std::pair<std::int64_t, std::uint32_t>> by_about;  // time lost, a match
    for (std::uint32_t m = 0; m < slow.size(); ++m) {
      if (!slow[m]) continue;
      const Match& match = table_.matches[m];
      const auto members = table_.members_of(match);
      if (std::none_of(members.begin(), members.end(), [&](std::uint32_t id) { return at_end[table_.uses[id].rank]; })) continue;
      by_iteration[match.iteration] += lateness_.slower[m].ns;
      auto& about = by_about[match.about];
      about.first += lateness_.slower[m].ns;
      if (about.second == 0 || lateness_.slower[m] > lateness_.slower[about.second]) about.second = m;
    }
    std::vector<std::size_t> late;
    std::vector<std::int64_t> times;
    for (const auto& [iteration, time] : by_iteration) {
      late.push_back(iteration);
      times.push_back(time);
      culprit.iterations.push_back(table_.indices[iteration]);
    }
    culprit.late = median_of(times);
    culprit.iterations_seen = n_;
    const PatternOf pattern = pattern_of(late, n_);
    culprit.pattern = pattern.pattern;
    culprit.period = pattern.period;
    const auto worst = std::max_element(by_about.begin(), by_about.end(), [](const auto& a, const auto& b) {
      return a.second.first < b.second.first;
    });
    if (worst == by_about.end()) return;
    const std::uint32_t m = worst->second.second;
    culprit.collective = table_.abouts[worst->first];
    const std::uint32_t size = std::max(culprit.collective.group_size, table_.matches[m].count);
    const double factor = bus_factor(culprit.collective.kind, size);
    culprit.achieved_busbw = factor * algorithm_bandwidth(culprit.collective.bytes, lateness_.transfer[m]);
    culprit.usual_busbw = factor * algorithm_bandwidth(culprit.collective.bytes, lateness_.transfer[m] - lateness_.slower[m]);
  }

  // --- stages of a pipeline ------------------------------------------------------------------------

  bool is_pipeline() const {
    return roles_.members.size() > 1 && std::any_of(table_.matches.begin(), table_.matches.end(), [&](const Match& match) {
             return is_point_to_point(table_.abouts[match.about].kind);
           });
  }

  // A stage that has more to do than the others, in all its ranks: their own work, in the median iteration.
  void blame_stages() {
    if (!is_pipeline()) return;
    std::vector<std::int64_t> work;
    for (const auto& members : roles_.members) {
      std::vector<std::int64_t> sums;
      for (std::size_t k = 0; k < members.size(); k += members.size() / 64 + 1)
        for (std::size_t i = 0; i < n_; ++i) {
          std::int64_t sum = 0;
          for (const JobUse& use : table_.uses_of(members[k], i)) sum += std::max<std::int64_t>(0, use.work.ns);
          if (sum > 0 && is_comparable(table_.iteration_of(members[k], i))) sums.push_back(sum);
        }
      work.push_back(median_of(sums).ns);
    }
    std::int64_t all = 0;
    for (const std::int64_t w : work) all += w;
    const std::int64_t mean = all / static_cast<std::int64_t>(work.size());
    const auto worst = static_cast<std::uint32_t>(std::max_element(work.begin(), work.end()) - work.begin());
    if (work[worst] * 10 < mean * 11) return;
    const double less = 1 - static_cast<double>(mean) / static_cast<double>(work[worst]);
    const World world{[&](std::uint32_t id) {
                        const JobUse& use = table_.uses[id];
                        if (roles_.of[use.rank] != worst || use.work.ns < 0) return DurationNs{};
                        return DurationNs{static_cast<std::int64_t>(less * static_cast<double>(use.work.ns))};
                      },
                      {}};
    const DurationNs saved = replay_.recorded() - replay_.length(world);
    if (share_of(saved, replay_.recorded()) < kLeastCostShare) return;
    Culprit culprit;
    culprit.kind = CulpritKind::kStage;
    set_cost(culprit, saved);
    for (const std::uint32_t r : roles_.members[worst])
      if (culprit.ranks.size() < kMostNamed) culprit.ranks.push_back(ranks_[r].who.rank);
    culprit.late = {work[worst] - mean};
    culprit.iterations_seen = n_;
    blame_.culprits.push_back(std::move(culprit));
  }

  // --- the end -------------------------------------------------------------------------------------

  void finish() {
    std::stable_sort(blame_.culprits.begin(), blame_.culprits.end(),
                     [](const Culprit& a, const Culprit& b) { return a.share > b.share; });
    const World ideal{[&](std::uint32_t id) { return lateness_.excess[id]; },
                      [&](std::uint32_t m) { return lateness_.slower[m]; }};
    blame_.what_if.ideal = replay_.length(ideal);
    std::unordered_set<std::uint32_t> named;
    std::vector<bool> slow(table_.matches.size(), false);
    for (const Culprit& culprit : blame_.culprits) {
      if (culprit.kind == CulpritKind::kNetwork)
        for (std::uint32_t m = 0; m < slow.size(); ++m) slow[m] = is_slow(m);
      else if (culprit.kind != CulpritKind::kStage) named.insert(culprit.ranks.begin(), culprit.ranks.end());
    }
    std::vector<bool> chosen(ranks_.size(), false);
    for (std::size_t r = 0; r < ranks_.size(); ++r) chosen[r] = named.count(ranks_[r].who.rank) > 0;
    World world = without(chosen);
    world.transfer = [&](std::uint32_t m) { return slow[m] ? lateness_.slower[m] : DurationNs{}; };
    blame_.what_if.without_culprits = replay_.length(world);
  }

  std::span<const RankSummary> ranks_;
  const JobTable& table_;
  const ClockFit& clocks_;
  const Roles& roles_;
  const Lateness& lateness_;
  JoinedReplay replay_;
  std::size_t n_;
  LateCells cells_;
  Blame blame_;
};

}  // namespace

Blame find_culprits(std::span<const RankSummary> ranks, const JobTable& table, const ClockFit& clocks,
                    const Roles& roles, const Lateness& lateness) {
  return Search{ranks, table, clocks, roles, lateness}.find();
}

}  // namespace gpudiag
