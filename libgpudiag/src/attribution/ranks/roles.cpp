// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/roles.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace gpudiag {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}

/// The iteration in the middle of those that most ranks have: the first and the last may be cut.
std::size_t reference_iteration(const JobTable& table, std::size_t ranks) {
  std::size_t most = 0;
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < table.iteration_count(); ++i) {
    std::size_t present = 0;
    for (std::size_t r = 0; r < ranks; ++r) present += table.uses_of(r, i).empty() ? 0 : 1;
    if (present > most) best.clear();
    most = std::max(most, present);
    if (present == most) best.push_back(i);
  }
  return best.empty() ? 0 : best[best.size() / 2];
}

class RoleFinder {
 public:
  RoleFinder(const JobTable& table, std::size_t ranks) : table_{table}, ranks_{ranks} {}

  Roles find() {
    const std::size_t reference = reference_iteration(table_, ranks_);
    std::vector<std::uint64_t> signature(ranks_, 0);
    for (std::size_t r = 0; r < ranks_ && table_.iteration_count() > 0; ++r) {
      const auto uses = table_.uses_of(r, reference);
      for (const JobUse& use : uses) signature[r] = mixed(signature[r], use.about + std::uint64_t{1});
    }
    const std::vector<std::uint32_t> stage = stages(signature);
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> ids;
    Roles roles;
    roles.of.assign(ranks_, kNowhere);
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      if (signature[r] == 0) continue;
      const auto [found, fresh] =
          ids.try_emplace({signature[r], stage[r]}, static_cast<std::uint32_t>(roles.members.size()));
      if (fresh) roles.members.emplace_back();
      roles.of[r] = found->second;
      roles.members[found->second].push_back(r);
    }
    return roles;
  }

 private:
  // The place along the chain of those that send to each other, where two of one signature do.
  std::vector<std::uint32_t> stages(const std::vector<std::uint64_t>& signature) const {
    std::vector<std::uint32_t> parent(ranks_);
    std::iota(parent.begin(), parent.end(), 0u);
    const auto root = [&](std::uint32_t r) {
      while (parent[r] != r) r = parent[r] = parent[parent[r]];
      return r;
    };
    bool conflict = false;
    for (const Match& match : table_.matches) {
      if (match.count != 2 || !is_point_to_point(table_.abouts[match.about].kind)) continue;
      const auto members = table_.members_of(match);
      const std::uint32_t a = table_.uses[members[0]].rank;
      const std::uint32_t b = table_.uses[members[1]].rank;
      conflict = conflict || (a != b && signature[a] == signature[b]);
      parent[root(a)] = root(b);
    }
    std::vector<std::uint32_t> place(ranks_, 0);
    if (!conflict) return place;
    std::vector<std::uint32_t> seen(ranks_, 0);
    for (std::uint32_t r = 0; r < ranks_; ++r) place[r] = seen[root(r)]++;
    return place;
  }

  const JobTable& table_;
  std::size_t ranks_;
};

}  // namespace

Roles find_roles(const JobTable& table, std::size_t ranks) { return RoleFinder{table, ranks}.find(); }

}  // namespace gpudiag
