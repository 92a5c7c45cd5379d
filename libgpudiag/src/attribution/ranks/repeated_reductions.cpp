// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/repeated_reductions.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace gpudiag {
namespace {

// More micro-batches than this are layers.
constexpr std::size_t kMostRepeats = 64;
// Norms and losses are reduced too; gradients are larger. Of operations whose size nobody knows equal ones
// cannot be told from the buckets of one pass.
constexpr std::uint64_t kLeastBytes = 1'000'000;

/// The shortest block that `kinds` repeats at least twice; its length, or that of all.
std::size_t block_of(const std::vector<std::uint32_t>& kinds) {
  for (std::size_t length = 1; length * 2 <= kinds.size(); ++length) {
    if (kinds.size() % length != 0) continue;
    bool repeats = true;
    for (std::size_t k = length; k < kinds.size() && repeats; ++k) repeats = kinds[k] == kinds[k - length];
    if (repeats) return length;
  }
  return kinds.size();
}

std::uint32_t repeats_in(const JobTable& table, std::size_t rank, std::size_t iteration, std::size_t ranks) {
  const RankIteration* ledger = table.iteration_of(rank, iteration);
  if (ledger == nullptr || ledger->partial || ledger->wall.ns <= 0) return 0;
  std::vector<std::uint32_t> kinds;
  std::vector<TimePoint> at;
  TimePoint begin = kTimeMax;
  for (const JobUse& use : table.uses_of(rank, iteration)) {
    if (use.base != kNowhere) begin = std::min(begin, use.arrival - use.work);
    if (use.match == kNowhere) continue;
    const CollectiveInfo& about = table.abouts[use.about];
    const bool reduces = about.kind == CollectiveKind::kAllReduce || about.kind == CollectiveKind::kReduceScatter;
    if (!reduces || table.matches[use.match].count < ranks || about.bytes < kLeastBytes) continue;
    kinds.push_back(use.about);
    at.push_back(use.arrival);
  }
  const std::size_t block = block_of(kinds);
  const std::size_t repeats = block == 0 ? 0 : kinds.size() / block;
  if (repeats < 2 || repeats > kMostRepeats) return 0;
  // Spread over the iteration: each block a micro-batch after the one before, the first no later.
  const auto share = static_cast<double>(ledger->wall.ns) / static_cast<double>(repeats);
  for (std::size_t k = 1; k < repeats; ++k)
    if (static_cast<double>((at[k * block] - at[(k - 1) * block]).ns) < 0.7 * share) return 0;
  if (begin != kTimeMax && static_cast<double>((at[0] - begin).ns) > 1.4 * share) return 0;
  return static_cast<std::uint32_t>(repeats);
}

}  // namespace

std::uint32_t find_repeated_reductions(const JobTable& table, std::size_t ranks) {
  if (ranks < 2) return 0;
  std::map<std::uint32_t, std::size_t> votes;
  for (std::size_t i = 0; i < table.iteration_count(); ++i) ++votes[repeats_in(table, 0, i, ranks)];
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? 0 : most->first;
}

}  // namespace gpudiag
