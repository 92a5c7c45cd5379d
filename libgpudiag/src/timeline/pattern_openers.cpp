// SPDX-License-Identifier: Apache-2.0
// Cycles without a known optimizer: what opens them is a copy to the device, a pause of the host or a
// graph. Micro-batches have those too, so that it takes longer to be sure.
#include <set>

#include "timeline/pattern_segments.hpp"

namespace gpudiag {
namespace {

// Cycles that must have come before one is believed: with a third more micro-batches in an iteration
// an unknown optimizer would be missed. Of long cycles fewer: what is remembered ends.
constexpr std::size_t kMostCycles = 33;
constexpr std::size_t kLeastCycles = 5;
constexpr std::size_t kLaunchesSeen = 110'000;
constexpr std::size_t kKinds = 64;
constexpr std::size_t kFewStretches = 24;
constexpr double kSame = 0.9;
// Of the kernels between two cycles: an evaluation has those of the cycle.
constexpr double kMostForeign = 0.4;
constexpr std::size_t kOptimizerKernels = 3;
constexpr std::int64_t kPause = 8;
constexpr std::int64_t kLeastPause = 20'000;  // ns; beside ordinary launches of 5 us

bool is_copy_symbol(std::uint32_t symbol) {
  return symbol == symbol_of(LaunchKind::kToDevice) || symbol == symbol_of(LaunchKind::kToHost) ||
         symbol == symbol_of(LaunchKind::kOtherCopy) || symbol == symbol_of(LaunchKind::kMemset);
}

using Events = std::vector<std::size_t>;

Events copies(std::span<const Launch> launches) {
  Events found;
  std::size_t last = 0;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (launches[i].kind != LaunchKind::kToDevice) continue;
    if (found.empty() || i > last + 2) found.push_back(i);
    last = i;
  }
  return found;
}

Events pauses(std::span<const Launch> launches) {
  std::vector<std::int64_t> gaps;
  for (const Launch& launch : launches) gaps.push_back(launch.pause.ns);
  const std::int64_t least = std::max(kLeastPause, kPause * median_of(gaps));
  Events found;
  for (std::size_t i = 1; i < launches.size(); ++i)
    if (launches[i].pause.ns >= least) found.push_back(i);
  return found;
}

Events graphs(std::span<const Launch> launches) {
  Events found;
  for (std::size_t i = 0; i < launches.size(); ++i)
    if (launches[i].kind == LaunchKind::kGraph) found.push_back(i);
  return found;
}

class Openers {
 public:
  Openers(std::span<const Launch> launches, Events&& events) : launches_(launches), events_(std::move(events)) {}

  std::optional<CyclePattern> cycle();

 private:
  Stretch stretch(std::size_t event) const { return {events_[event], events_[event + 1]}; }
  /// False where there are too many of them.
  bool find_kinds();
  void find_rare();
  /// Enough of them to be an optimizer's.
  bool rare_in(const Counts& counts) const {
    return static_cast<std::size_t>(std::ranges::count_if(counts, [&](const auto& one) { return rare_.contains(one.first); })) >= kOptimizerKernels;
  }
  std::size_t rare_stretches() const {
    return static_cast<std::size_t>(std::ranges::count_if(kinds_, [&](std::uint32_t kind) { return kind < rare_of_.size() && rare_of_[kind]; }));
  }
  std::size_t foreign_behind(std::uint32_t usual, std::uint32_t kind) const;
  std::size_t needed(std::size_t length) const {
    return std::clamp(kLaunchesSeen / std::max<std::size_t>(1, length), kLeastCycles, kMostCycles);
  }
  bool rare_closes(std::uint32_t usual) const;
  std::size_t period();
  std::size_t period_with_others(std::uint32_t usual, std::size_t times, std::size_t repeat) const;
  std::vector<std::size_t> turns(std::size_t period) const;

  std::span<const Launch> launches_;
  Events events_;
  std::vector<Counts> examples_;
  std::set<std::uint32_t> rare_;       ///< symbols
  std::unordered_map<std::uint32_t, std::size_t> stretches_with_;  ///< by symbol
  std::vector<bool> rare_of_;          ///< by kind
  std::vector<std::size_t> lengths_;   ///< by kind
  std::vector<std::uint32_t> kinds_;   ///< by stretch
};

bool Openers::find_kinds() {
  find_rare();
  for (std::size_t i = 0; i + 1 < events_.size(); ++i) {
    const Counts counts = symbols_of(launches_, stretch(i));
    const std::size_t length = stretch(i).size();
    std::uint32_t kind = 0;
    for (; kind < examples_.size(); ++kind) {
      const std::size_t apart = std::max(length, lengths_[kind]) - std::min(length, lengths_[kind]);
      if (apart <= 2 + lengths_[kind] / 33 && rare_in(counts) == rare_of_[kind] && alike(examples_[kind], counts) >= kSame) break;
    }
    if (kind == examples_.size()) {
      // Stretches of which hardly two are alike come of no loop.
      if (examples_.size() == kKinds || 2 * examples_.size() > i + kFewStretches) return false;
      examples_.push_back(counts);
      lengths_.push_back(length);
      rare_of_.push_back(rare_in(counts));
    }
    kinds_.push_back(kind);
  }
  return true;
}

// A stretch that has no more of a kind's launches than the usual one stands for itself, as an evaluation's
// batches do; one that has all of them has more behind.
std::size_t Openers::foreign_behind(std::uint32_t usual, std::uint32_t kind) const {
  std::size_t common = 0, foreign = 0, more = 0;
  for (const auto& [symbol, count] : examples_[kind]) {
    const auto known = examples_[usual].find(symbol);
    const std::uint32_t had = known == examples_[usual].end() ? 0 : known->second;
    common += std::min(count, had);
    if (count > had) more += count - had;
    if (had == 0 && !is_copy_symbol(symbol)) foreign += count;
  }
  const bool whole = static_cast<double>(common) >= kSame * static_cast<double>(total(examples_[usual]));
  const std::size_t of = whole ? more : common + more;
  return static_cast<double>(foreign) > kMostForeign * static_cast<double>(of) ? foreign : 0;
}

// Most stretches are alike, and others come among them: evaluations, which change nothing, or what
// closes a larger cycle.
std::size_t Openers::period_with_others(std::uint32_t usual, std::size_t times, std::size_t repeat) const {
  std::size_t foreign = 0;
  for (std::uint32_t kind = 0; kind < examples_.size(); ++kind)
    if (kind != usual) foreign = std::max(foreign, foreign_behind(usual, kind));
  if (foreign == 0 && rare_stretches() >= 3) return 0;
  if (foreign == 0) return times >= needed(lengths_[usual]) && !rare_closes(usual) ? 1 : 0;
  // One kernel more may be a metric that is read now and then as well as a whole optimizer; many more are
  // a training step among the batches of an evaluation.
  return foreign >= kOptimizerKernels && 2 * foreign < lengths_[usual] && repeat > 1 ? repeat : 0;
}

// Kernels that most stretches lack are a few launches of many, and yet an optimizer's.
void Openers::find_rare() {
  for (std::size_t i = 0; i + 1 < events_.size(); ++i)
    for (const auto& [symbol, count] : symbols_of(launches_, stretch(i))) ++stretches_with_[symbol];
  for (const auto& [symbol, count] : stretches_with_)
    if (2 * count < events_.size() && count >= 3 && !is_copy_symbol(symbol)) rare_.insert(symbol);
}

// Does a stretch that has all of the usual one end with a kernel that most lack? It may be an optimizer.
bool Openers::rare_closes(std::uint32_t usual) const {
  const Counts& of_usual = examples_[usual];
  for (std::size_t i = 1; i + 1 < events_.size(); ++i) {
    std::size_t last = events_[i + 1];
    while (last > events_[i] && is_copy_symbol(launches_[last - 1].symbol)) --last;
    if (last == events_[i]) continue;
    const auto seen = stretches_with_.find(launches_[last - 1].symbol);
    if (2 * seen->second >= events_.size()) continue;
    const Counts counts = symbols_of(launches_, stretch(i));
    std::size_t common = 0;
    for (const auto& [symbol, count] : of_usual)
      if (const auto found = counts.find(symbol); found != counts.end()) common += std::min(count, found->second);
    if (static_cast<double>(common) >= kSame * static_cast<double>(total(of_usual))) return true;
  }
  return false;
}

std::size_t Openers::period() {
  if (!find_kinds()) return 0;
  if (kinds_.size() < kLeastCycles) return 0;
  std::vector<std::size_t> times(examples_.size() + 1);
  for (const std::uint32_t kind : kinds_) ++times[kind];
  const auto usual = static_cast<std::uint32_t>(std::ranges::max_element(times) - times.begin());
  if (usual == examples_.size()) return 0;
  const std::size_t repeat = repeat_of(kinds_, 4, kLeastCycles, kKinds);
  if (2 * times[usual] > kinds_.size() && examples_.size() > 1) return period_with_others(usual, times[usual], repeat);
  if (repeat == 0) return 0;
  std::size_t length = 0;
  for (std::size_t i = 0; i < repeat; ++i) length += stretch(kinds_.size() - 1 - i).size();
  if (repeat == 1 && rare_closes(usual)) return 0;
  return kinds_.size() / repeat >= needed(length) ? repeat : 0;
}

std::vector<std::size_t> Openers::turns(std::size_t period) const {
  // The larger cycle turns behind its longest stretch.
  std::size_t longest = kinds_.size() - period;
  for (std::size_t i = longest; i < kinds_.size(); ++i)
    if (stretch(i).size() > stretch(longest).size()) longest = i;
  std::vector<std::size_t> found;
  for (std::size_t i = longest + 1; found.size() < 6; i -= period) {
    found.push_back(events_[i]);
    if (i < period) break;
  }
  std::ranges::reverse(found);
  return found;
}

std::optional<CyclePattern> Openers::cycle() {
  if (events_.size() < kLeastCycles + 1) return std::nullopt;
  const std::size_t found = period();
  if (found == 0) return std::nullopt;
  CyclePattern cycle = anchor(launches_, turns(found));
  return cycle.anchors.empty() ? std::nullopt : std::optional{std::move(cycle)};
}

}  // namespace

std::optional<CyclePattern> find_by_openers(std::span<const Launch> launches) {
  if (launches.empty()) return std::nullopt;
  // A copy says most, a graph least.
  for (auto* events : {&copies, &pauses, &graphs}) {
    Events found = events(launches);
    if (found.size() < kLeastCycles + 1) continue;
    return Openers{launches, std::move(found)}.cycle();
  }
  return std::nullopt;
}

}  // namespace gpudiag
