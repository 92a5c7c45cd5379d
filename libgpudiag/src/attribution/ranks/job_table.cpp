// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/job_table.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace gpudiag {
namespace {

/// The texts of one rank's abouts, in the job's numbers.
struct RankAbouts {
  std::vector<std::uint32_t> about;
  std::vector<std::uint32_t> group;
};

/// Gives out numbers for texts.
class Numbers {
 public:
  std::uint32_t of(const std::string& text) {
    return ids_.try_emplace(text, static_cast<std::uint32_t>(ids_.size())).first->second;
  }
  std::size_t size() const { return ids_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
};

/// Of a transfer between two ranks of a larger group the two are the group.
std::string group_of(const CollectiveInfo& info) {
  const bool pair_known = info.peer != kNoRank && info.rank_in_group != kNoRank;
  if (!pair_known || (info.kind != CollectiveKind::kSend && info.kind != CollectiveKind::kRecv)) return info.group;
  const bool sends = info.kind == CollectiveKind::kSend;
  const std::uint32_t from = sends ? info.rank_in_group : info.peer;
  const std::uint32_t to = sends ? info.peer : info.rank_in_group;
  return info.group + "|" + std::to_string(from) + ">" + std::to_string(to);
}

/// What all ranks of a collective have in common.
CollectiveInfo common_part(CollectiveInfo info) {
  info.rank_in_group = info.peer = info.root = kNoRank;
  info.group.clear();
  return info;
}

/// The kind as the other side sees it.
CollectiveKind matching_kind(CollectiveKind kind) {
  return is_point_to_point(kind) ? CollectiveKind::kSendRecv : kind;
}

struct Key {
  std::uint32_t group;
  std::uint32_t iteration;  ///< kNowhere where the sequence number tells
  std::uint32_t order;
  std::uint32_t use;
  auto operator<=>(const Key&) const = default;
  bool same_place(const Key& other) const {
    return group == other.group && iteration == other.iteration && order == other.order;
  }
};

/// Between two kernels that wait for each other on a stream a GPU takes a few microseconds.
constexpr DurationNs kQueuedWithin = microseconds(20);

class Builder {
 public:
  explicit Builder(std::span<const RankSummary> ranks) : ranks_{ranks} {}

  JobTable build() {
    number_iterations();
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) add_rank(r);
    table_.starts.push_back(static_cast<std::uint32_t>(table_.uses.size()));
    join();
    sort_matches();
    return std::move(table_);
  }

 private:
  void number_iterations() {
    for (const RankSummary& rank : ranks_)
      for (const RankIteration& iteration : rank.iterations) table_.indices.push_back(iteration.index);
    std::sort(table_.indices.begin(), table_.indices.end());
    table_.indices.erase(std::unique(table_.indices.begin(), table_.indices.end()), table_.indices.end());
    table_.iterations.resize(table_.indices.size() * ranks_.size(), nullptr);
    table_.starts.reserve(table_.iterations.size() + 1);
  }

  std::uint32_t position_of(std::uint64_t index) const {
    return static_cast<std::uint32_t>(
        std::lower_bound(table_.indices.begin(), table_.indices.end(), index) - table_.indices.begin());
  }

  RankAbouts number_abouts(const RankSummary& rank) {
    RankAbouts numbers;
    for (const CollectiveInfo& info : rank.abouts) {
      const CollectiveInfo common = common_part(info);
      const std::uint32_t about = abouts_.of(text_of(common));
      if (about == table_.abouts.size()) table_.abouts.push_back(common);
      numbers.about.push_back(about);
      if (info.group.empty()) {  // its description was lost: nobody knows whom it was with
        numbers.group.push_back(kNowhere);
        continue;
      }
      const std::string group = group_of(info);
      const std::uint32_t number = groups_.of(group);
      if (number == table_.groups.size()) table_.groups.push_back(group);
      numbers.group.push_back(number);
    }
    return numbers;
  }

  void add_rank(std::uint32_t r) {
    const RankSummary& rank = ranks_[r];
    const RankAbouts numbers = number_abouts(rank);
    const std::size_t n = table_.indices.size();
    // Windows of one second are no iterations: their numbers say nothing to another rank.
    const bool marked = std::any_of(rank.iterations.begin(), rank.iterations.end(),
                                    [](const RankIteration& i) { return i.phase != Phase::kWindow; });
    std::uint32_t next = 0;  // iteration whose start has not been noted
    const auto open_until = [&](std::uint32_t iteration) {
      while (next <= iteration) {
        table_.starts.push_back(static_cast<std::uint32_t>(table_.uses.size()));
        ++next;
      }
    };
    std::unordered_map<std::uint32_t, std::uint32_t> used;  // how often each group, in the iteration
    last_waited_ = kNowhere;
    std::vector<std::uint32_t> last_of_group(groups_.size(), kNowhere);
    for (const RankIteration& iteration : rank.iterations) {
      const std::uint32_t i = position_of(iteration.index);
      if (i < next) continue;  // an index that stands twice (a restart): the first one counts
      open_until(i);
      table_.iterations[r * n + i] = &iteration;
      if (marked) used.clear();
      for (const CollectiveUse& use : rank.uses_of(iteration)) {
        if (use.about >= numbers.about.size()) continue;
        const std::uint32_t group = numbers.group[use.about];
        const bool told = use.sequence != kNoSequence;
        const std::uint32_t order = told ? use.sequence : used[group]++;
        const auto id = static_cast<std::uint32_t>(table_.uses.size());
        if (group != kNowhere) keys_.push_back({group, told || !marked ? kNowhere : i, order, id});
        std::uint32_t none = kNowhere;
        add_use(use, r, i, numbers.about[use.about], group == kNowhere ? none : last_of_group[group]);
      }
    }
    if (n > 0) open_until(static_cast<std::uint32_t>(n - 1));
  }

  // What compute does not hide, the rank waited for; what came after it began from its end.
  void add_use(const CollectiveUse& use, std::uint32_t rank, std::uint32_t iteration, std::uint32_t about,
               std::uint32_t& before) {
    const auto id = static_cast<std::uint32_t>(table_.uses.size());
    JobUse made;
    made.arrival = use.arrival;
    made.end = use.end;
    made.exposed = use.exposed;
    made.rank = rank;
    made.iteration = iteration;
    made.about = about;
    std::uint32_t base = last_waited_;
    while (base != kNowhere && table_.uses[base].end > use.arrival) base = table_.uses[base].base;
    // Right behind the operation before it on its stream: it had been asked for already.
    if (before != kNowhere && use.arrival >= table_.uses[before].end && use.arrival - table_.uses[before].end <= kQueuedWithin) {
      made.queued = true;
      base = before;
    }
    before = id;
    made.base = base;
    if (base != kNowhere) made.work = use.arrival - table_.uses[base].end;
    table_.uses.push_back(made);
    const bool waited = use.exposed.ns * 10 >= (use.end - use.start).ns || use.exposed >= microseconds(500);
    if (waited && (last_waited_ == kNowhere || table_.uses[last_waited_].end <= use.end)) last_waited_ = id;
  }

  void join() {
    std::sort(keys_.begin(), keys_.end());
    table_.counts.uses = table_.uses.size();
    table_.counts.alone = table_.uses.size() - keys_.size();
    table_.members.reserve(keys_.size());
    for (std::size_t from = 0; from < keys_.size();) {
      std::size_t to = from + 1;
      while (to < keys_.size() && keys_[to].same_place(keys_[from])) ++to;
      join_place(from, to);
      from = to;
    }
    keys_.clear();
    keys_.shrink_to_fit();
  }

  // The uses at one place of a group's order, by kind.
  void join_place(std::size_t from, std::size_t to) {
    const auto kind_of = [&](const Key& key) {
      const CollectiveInfo& about = table_.abouts[table_.uses[key.use].about];
      return std::pair{matching_kind(about.kind), about.bytes};
    };
    bool differ = false;
    for (std::size_t k = from + 1; k < to; ++k) differ = differ || kind_of(keys_[k]) != kind_of(keys_[from]);
    if (differ) {
      ++table_.counts.kinds_differ;
      std::stable_sort(keys_.begin() + static_cast<std::ptrdiff_t>(from), keys_.begin() + static_cast<std::ptrdiff_t>(to),
                       [&](const Key& a, const Key& b) { return kind_of(a) < kind_of(b); });
    }
    while (from < to) {
      std::size_t end = from + 1;
      while (end < to && kind_of(keys_[end]) == kind_of(keys_[from])) ++end;
      make_match(from, end);
      from = end;
    }
  }

  void make_match(std::size_t from, std::size_t to) {
    if (to - from < 2) {
      ++table_.counts.alone;
      return;
    }
    const auto id = static_cast<std::uint32_t>(table_.matches.size());
    Match match;
    match.first = static_cast<std::uint32_t>(table_.members.size());
    match.count = static_cast<std::uint32_t>(to - from);
    match.about = table_.uses[keys_[from].use].about;
    match.group = keys_[from].group;
    match.iteration = table_.uses[keys_[from].use].iteration;
    for (std::size_t k = from; k < to; ++k) {
      table_.members.push_back(keys_[k].use);
      table_.uses[keys_[k].use].match = id;
    }
    ++table_.counts.collectives;
    table_.counts.matched += match.count;
    const CollectiveInfo& about = table_.abouts[match.about];
    const std::uint32_t size = is_point_to_point(about.kind) ? 2 : about.group_size;
    if (size > match.count) ++table_.counts.incomplete;
    table_.matches.push_back(match);
  }

  void sort_matches() {
    std::vector<std::uint32_t> order(table_.matches.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return table_.matches[a].iteration < table_.matches[b].iteration;
    });
    std::vector<Match> sorted;
    sorted.reserve(order.size());
    for (const std::uint32_t old : order) sorted.push_back(table_.matches[old]);
    table_.matches = std::move(sorted);
    for (std::uint32_t m = 0; m < table_.matches.size(); ++m)
      for (const std::uint32_t use : table_.members_of(table_.matches[m])) table_.uses[use].match = m;
  }

  std::span<const RankSummary> ranks_;
  JobTable table_;
  Numbers abouts_;
  Numbers groups_;
  std::vector<Key> keys_;
  std::uint32_t last_waited_ = kNowhere;
};

}  // namespace

JobTable make_job_table(std::span<const RankSummary> ranks) { return Builder{ranks}.build(); }

}  // namespace gpudiag
