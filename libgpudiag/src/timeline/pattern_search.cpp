// SPDX-License-Identifier: Apache-2.0
#include "timeline/pattern_search.hpp"

#include <algorithm>
#include <array>

#include "timeline/pattern_segments.hpp"

namespace gpudiag {
namespace {

// A run of an optimizer that goes over the parameters one by one: of so many launches in a row no more
// than three kernels by name. Between the operators of a model there are no such runs.
constexpr std::size_t kRun = 24;
constexpr std::size_t kRunKernels = 3;
// Beyond, all that is launched are such runs and they close nothing.
constexpr double kMostRuns = 0.7;

std::vector<bool> named_closers(std::span<const Launch> launches) {
  std::vector<bool> closes(launches.size());
  for (std::size_t i = 0; i < launches.size(); ++i) closes[i] = launches[i].optimizer;
  return closes;
}

std::vector<bool> runs(std::span<const Launch> launches) {
  std::vector<bool> in_run(launches.size());
  struct Kernel {
    std::uint32_t symbol = 0;
    std::size_t next = 0;  ///< behind where it came last
  };
  std::array<Kernel, kRunKernels> recent{};  // the latest first
  std::size_t begin = 0, marked = 0;         // since `begin` no others came
  for (std::size_t i = 0; i < launches.size(); ++i) {
    std::size_t at = 0;
    while (at + 1 < kRunKernels && recent[at].symbol != launches[i].symbol) ++at;
    if (recent[at].symbol != launches[i].symbol) begin = recent[at].next;
    for (; at > 0; --at) recent[at] = recent[at - 1];
    recent[0] = {launches[i].symbol, i + 1};
    if (i + 1 - begin < kRun) continue;
    for (std::size_t j = std::max(marked, begin); j <= i; ++j) in_run[j] = launches[j].kind == LaunchKind::kKernel;
    marked = i + 1;
  }
  return in_run;
}

double share_of(const std::vector<bool>& flags) {
  const auto set = std::count(flags.begin(), flags.end(), true);
  return static_cast<double>(set) / static_cast<double>(std::max<std::size_t>(1, flags.size()));
}

std::optional<CyclePattern> known_by(CycleEvidence evidence, std::optional<CyclePattern>&& found) {
  if (found) found->evidence = evidence;
  return std::move(found);
}

}  // namespace

std::optional<CyclePattern> find_cycle(std::span<const Launch> launches) {
  const std::vector<bool> named = named_closers(launches);
  // What an optimizer closes is never sought by less: it will come, or it has and nothing is sure.
  if (std::ranges::find(named, true) != named.end())
    return known_by(CycleEvidence::kOptimizer, find_by_closers(launches, named, true));
  const std::vector<bool> in_run = runs(launches);
  if (const double share = share_of(in_run); share > 0 && share <= kMostRuns)
    if (auto found = find_by_closers(launches, in_run, false)) return known_by(CycleEvidence::kRuns, std::move(found));
  return known_by(CycleEvidence::kOpener, find_by_openers(launches));
}

}  // namespace gpudiag
