// SPDX-License-Identifier: Apache-2.0
// Cycles that an optimizer closes: its launches stand together, the same ones with the same grids each
// time, for parameters do not change their shapes as sequences do.
#include <cmath>
#include <set>

#include "timeline/pattern_segments.hpp"

namespace gpudiag {
namespace {

// Of the optimizer's launches with their grids, in two steps of one optimizer.
constexpr double kSameClosers = 0.8;
// Of the launches by name between them: kernels are chosen by shape, so sequences of varying length
// share only what does not depend on it.
constexpr double kSameContent = 0.6;
// Two networks that take turns and differ less than that are taken for one.
constexpr double kTwins = 0.1;
constexpr std::size_t kKinds = 64;
// More of all launches than this that no cycle has: the cycle is a part of a larger one.
constexpr double kMostForeign = 0.25;
// The loop turns within so many launches behind the optimizer's.
constexpr std::size_t kRegion = 64;
// A pause of the host: so many times the usual time between launches.
constexpr std::int64_t kPause = 3;

// Of two pauses that differ by less, as those before micro-batches do, the first counts.
bool longer(std::int64_t pause, std::int64_t than) { return 2 * pause > 3 * than; }

struct Closer {
  Stretch at;
  Counts shapes;
  std::size_t size = 0;  ///< launches of the optimizer in it
};

std::vector<std::size_t> distances_of(const std::vector<std::size_t>& positions) {
  std::vector<std::size_t> apart;
  for (std::size_t i = 1; i < positions.size(); ++i) apart.push_back(positions[i] - positions[i - 1]);
  return apart;
}

/// Distances up to which closers may stand together, rising: where there is a step in how far they lie apart.
std::vector<std::size_t> distances_within(const std::vector<std::size_t>& positions) {
  std::vector<std::size_t> apart = distances_of(positions);
  std::ranges::sort(apart);
  std::vector<std::size_t> found{0};
  for (std::size_t i = 1; i < apart.size(); ++i)
    if (apart[i] >= 2 * apart[i - 1] + 2) found.push_back(apart[i - 1]);
  return found;
}

std::vector<Closer> gather(std::span<const Launch> launches, const std::vector<std::size_t>& positions,
                           std::size_t within) {
  std::vector<Closer> closers;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::size_t at = positions[i];
    const bool joins = i > 0 && at - positions[i - 1] <= within && launches[at].kind != LaunchKind::kGraph;
    if (!joins) closers.push_back({{at, at + 1}, {}, 0});
    Closer& closer = closers.back();
    closer.at.end = at + 1;
    ++closer.shapes[launches[at].shaped];
    ++closer.size;
  }
  return closers;
}

// At distances of `usual`, or twice or thrice as far where some were lost.
bool come_as_often(const std::vector<std::size_t>& places, std::size_t usual) {
  const auto fits = [&](std::size_t distance) {
    const std::size_t times = (distance + usual / 2) / usual;
    const std::size_t apart = std::max(distance, times * usual) - std::min(distance, times * usual);
    return times >= 1 && times <= 3 && apart <= 2 + usual * times / 50;
  };
  return places.size() >= 2 && std::ranges::all_of(distances_of(places), fits);
}

// What brings an optimizer's launch into the middle of a step (a record that came twice, one of another
// thread) stands alone, and seldom twice behind the same kernels.
void drop_strays(std::span<const Launch> launches, std::vector<Closer>& closers) {
  std::size_t largest = 0;
  for (const Closer& closer : closers) largest = std::max(largest, closer.size);
  if (largest >= 4) std::erase_if(closers, [&](const Closer& closer) { return 4 * closer.size <= largest; });
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> contexts;
  const auto context = [&](const Closer& closer) {
    const std::size_t at = closer.at.begin;
    return at < 2 ? 0 : triple(launches[at - 2].symbol, launches[at - 1].symbol, launches[at].symbol);
  };
  for (const Closer& closer : closers) contexts[context(closer)].push_back(closer.at.begin);
  const std::vector<std::size_t>* most = nullptr;
  for (const auto& [key, places] : contexts)
    if (most == nullptr || places.size() > most->size() || (places.size() == most->size() && places < *most)) most = &places;
  if (most == nullptr || most->size() < 3) return;
  std::vector<std::size_t> apart = distances_of(*most);
  const std::size_t usual = median_of(apart);
  std::erase_if(closers, [&](const Closer& closer) {
    if (closer.size >= 4 || closer.at.begin < 2) return false;
    const std::vector<std::size_t>& places = contexts[context(closer)];
    return 2 * places.size() <= most->size() && !come_as_often(places, usual);
  });
}

/// Steps of optimizers, and what lies between them.
class Steps {
 public:
  Steps(std::span<const Launch> launches, std::vector<Closer>&& closers, bool named)
      : launches_(launches), closers_(std::move(closers)), named_(named) {}

  std::optional<CyclePattern> cycle();
  /// After cycle() has returned none: there is one, of which more must be seen.
  bool repeats() const { return repeats_; }

 private:
  Stretch content(std::size_t closer) const { return {closers_[closer - 1].at.end, closers_[closer].at.begin}; }
  double content_alike(std::size_t a, std::size_t b) const;
  std::uint32_t kind_of(std::size_t closer);
  /// False where there are too many of them.
  bool find_kinds();
  bool drop_odd();
  bool are_twins() const;
  bool covers() const;
  std::size_t usual_length() const;
  std::int64_t usual_gap() const;
  struct Place {
    std::size_t phase = 0;
    std::size_t behind = 0;  ///< launches behind the phase's closer
    std::int64_t gap = -1;
    bool copy = false;
  };
  std::vector<std::size_t> of_phase(std::size_t phase) const;
  void look_at(std::size_t phase, Place& pause, Place& copy) const;
  std::optional<Place> turn() const;
  std::vector<std::size_t> turns_at(const Place& place) const;

  std::span<const Launch> launches_;
  std::vector<Closer> closers_;
  bool named_;                        ///< false: they may stand anywhere in the cycle
  std::vector<std::uint32_t> kinds_;  ///< of closer i + 1
  std::vector<std::size_t> examples_; ///< by kind: the closer that it was made for
  std::size_t period_ = 0;            ///< closers in a cycle
  bool repeats_ = false;
};

double Steps::content_alike(std::size_t a, std::size_t b) const {
  Stretch first = content(a), second = content(b);
  const std::size_t common = std::min(first.size(), second.size());
  // Something else may have come in between, before the step that ends here.
  if (common == 0) return std::max(first.size(), second.size()) <= 8 ? 1 : 0;
  first.begin = first.end - common;
  second.begin = second.end - common;
  return alike(symbols_of(launches_, first), symbols_of(launches_, second));
}

std::uint32_t Steps::kind_of(std::size_t closer) {
  for (std::uint32_t kind = 0; kind < examples_.size(); ++kind) {
    const std::size_t example = examples_[kind];
    if (alike(closers_[example].shapes, closers_[closer].shapes) >= kSameClosers &&
        content_alike(example, closer) >= kSameContent)
      return kind;
  }
  examples_.push_back(closer);
  return static_cast<std::uint32_t>(examples_.size()) - 1;
}

bool Steps::find_kinds() {
  kinds_.clear();
  examples_.clear();
  // The newest decide: the first iterations of a job have launches of their own.
  for (std::size_t i = closers_.size(); i-- > 1;) {
    kinds_.push_back(kind_of(i));
    // No cycle has more.
    if (examples_.size() > kKinds) return false;
  }
  std::ranges::reverse(kinds_);
  return true;
}

// One step that is like no other among four: launches of it were lost, or something came in between.
bool Steps::drop_odd() {
  std::unordered_map<std::uint32_t, std::size_t> times;
  for (const std::uint32_t kind : kinds_) ++times[kind];
  std::size_t odd = 0;
  for (const std::uint32_t kind : kinds_) odd += times[kind] == 1 ? 1 : 0;
  if (odd == 0 || 4 * odd > kinds_.size()) return false;
  // The first closer has no kind, for what lies before it is not known.
  for (std::size_t i = kinds_.size(); i-- > 0;)
    if (times[kinds_[i]] == 1) closers_.erase(closers_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  return find_kinds() && closers_.size() >= 4;
}

// Two networks with the same parameters that take turns: a step is like the last but one, not the last.
bool Steps::are_twins() const {
  double last = 0, last_but_one = 0;
  std::size_t count = 0;
  for (std::size_t i = closers_.size() - 1; i >= 3 && count < 6; --i, ++count) {
    last += content_alike(i, i - 1);
    last_but_one += content_alike(i, i - 2);
  }
  return count >= 2 && last_but_one - last > kTwins * static_cast<double>(count);
}

std::size_t Steps::usual_length() const {
  std::vector<std::size_t> lengths;
  for (std::size_t i = closers_.size() - 1; i >= period_ && lengths.size() < 8; --i)
    lengths.push_back(closers_[i].at.end - closers_[i - period_].at.end);
  return median_of(lengths);
}

// Layers with an optimizer of their own, say, are no iterations: most of what is launched is then not of
// the cycle, and of kernels that it does not have. An evaluation between iterations has their kernels.
bool Steps::covers() const {
  const std::size_t length = usual_length();
  const std::size_t last = closers_.back().at.end;
  std::set<std::uint32_t> known;
  std::size_t others = 0;
  for (std::size_t i = last - std::min(last, 2 * length); i < last; ++i) known.insert(launches_[i].symbol);
  for (std::size_t i = last - std::min(last, 2 * length); i < last; ++i) others += launches_[i].optimizer ? 0 : 1;
  const auto foreign_in = [&](Stretch stretch) {
    std::size_t count = 0;
    for (std::size_t i = stretch.begin; i < stretch.end; ++i) count += known.contains(launches_[i].symbol) ? 0 : 1;
    return count;
  };
  const std::size_t first = closers_[0].at.end;
  const auto seen = static_cast<double>(last - first);
  if (static_cast<double>(foreign_in({first, last})) > kMostForeign * seen) return false;
  // What came before the first step, but for a step of its own, is the loop's too unless it is short.
  const std::size_t before = first - std::min(first, length);
  return 2 * foreign_in({0, before}) <= last - first;
}

std::int64_t Steps::usual_gap() const {
  std::vector<std::int64_t> gaps;
  for (std::size_t i = launches_.size() - std::min<std::size_t>(launches_.size(), 4096); i < launches_.size(); ++i)
    gaps.push_back(launches_[i].pause.ns);
  return std::max<std::int64_t>(1, median_of(gaps));
}

std::vector<std::size_t> Steps::of_phase(std::size_t phase) const {
  std::vector<std::size_t> found;
  for (std::size_t i = closers_.size(); i-- > 0 && found.size() < 5;)
    if ((closers_.size() - 1 - i) % period_ == phase) found.push_back(i);
  std::ranges::reverse(found);
  return found;
}

void Steps::look_at(std::size_t phase, Place& pause, Place& copy) const {
  const std::vector<std::size_t> closers = of_phase(phase);
  std::size_t length = named_ ? kRegion : ~std::size_t{0};
  for (const std::size_t i : closers) {
    const std::size_t part = named_ ? 3 : 1;
    if (i + 1 < closers_.size()) length = std::min(length, std::max<std::size_t>(1, content(i + 1).size() / part));
  }
  if (length == ~std::size_t{0}) return;
  for (std::size_t behind = 0; behind < length; ++behind) {
    std::vector<std::int64_t> gaps;
    std::size_t copies = 0;
    for (const std::size_t i : closers) {
      const std::size_t at = closers_[i].at.end + behind;
      if (at >= launches_.size()) continue;
      gaps.push_back(launches_[at].pause.ns);
      copies += launches_[at].kind == LaunchKind::kToDevice ? 1 : 0;
    }
    if (gaps.size() < 2) continue;
    const bool is_copy = 2 * copies > gaps.size();
    const std::int64_t gap = median_of(gaps);
    if (longer(gap, pause.gap)) pause = {phase, behind, gap, is_copy};
    if (is_copy && longer(gap, copy.gap)) copy = {phase, behind, gap, true};
  }
}

// Behind the optimizer: where the host pauses longest, or where the batch is copied to the device, if it
// pauses there at all; otherwise at once. A run of kernels that nobody knows may clear gradients in the
// middle of a step: the turn is then sought everywhere, and where there is no such place nothing is said.
std::optional<Steps::Place> Steps::turn() const {
  Place pause, copy;
  for (std::size_t phase = 0; phase < period_; ++phase) look_at(phase, pause, copy);
  const std::int64_t usual = usual_gap();
  if (copy.gap >= 0 && (!named_ || 2 * copy.gap >= pause.gap || pause.gap < kPause * usual)) return copy;
  if (pause.gap >= kPause * usual) return pause;
  if (!named_) return std::nullopt;
  Place longest;
  std::size_t most = 0;
  for (std::size_t phase = 0; phase < period_; ++phase) {
    for (const std::size_t i : of_phase(phase)) {
      if (i + 1 >= closers_.size() || content(i + 1).size() <= most) continue;
      most = content(i + 1).size();
      longest.phase = phase;
    }
  }
  return longest;
}

std::vector<std::size_t> Steps::turns_at(const Place& place) const {
  std::vector<std::size_t> turns;
  for (const std::size_t i : of_phase(place.phase))
    if (closers_[i].at.end + place.behind <= launches_.size()) turns.push_back(closers_[i].at.end + place.behind);
  return turns;
}

std::optional<CyclePattern> Steps::cycle() {
  if (closers_.size() < 4) return std::nullopt;
  if (!find_kinds()) return std::nullopt;
  period_ = repeat_of(kinds_, 3, 3, kKinds);
  if (period_ == 0 && drop_odd()) period_ = repeat_of(kinds_, 3, 3, kKinds);
  if (period_ == 1 && are_twins()) period_ = closers_.size() >= 7 ? 2 : 0;
  if (period_ == 0 || !covers()) return std::nullopt;
  const std::size_t last = closers_.size() - 1;
  std::size_t others = 0;
  bool graph = false;
  for (std::size_t i = 0; i < period_; ++i) {
    others += content(last - i).size();
    graph = graph || launches_[closers_[last - i].at.begin].kind == LaunchKind::kGraph;
  }
  if (others == 0 && !graph) return std::nullopt;
  const auto place = turn();
  if (!place) return std::nullopt;
  repeats_ = true;
  CyclePattern found = anchor(launches_, turns_at(*place));
  return found.anchors.empty() ? std::nullopt : std::optional{std::move(found)};
}

}  // namespace

std::optional<CyclePattern> find_by_closers(std::span<const Launch> launches, const std::vector<bool>& closes,
                                            bool named) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < launches.size(); ++i)
    if (closes[i]) positions.push_back(i);
  if (positions.size() < 4) return std::nullopt;
  for (const std::size_t within : distances_within(positions)) {
    std::vector<Closer> closers = gather(launches, positions, within);
    drop_strays(launches, closers);
    if (closers.size() < 4) break;  // farther apart there are fewer still
    Steps steps{launches, std::move(closers), named};
    if (auto found = steps.cycle()) return found;
    if (steps.repeats()) break;
  }
  return std::nullopt;
}

}  // namespace gpudiag
