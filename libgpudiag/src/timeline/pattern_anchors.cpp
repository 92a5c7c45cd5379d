// SPDX-License-Identifier: Apache-2.0
// Of a cycle that has been found: the triples of launches that come once in each of its last repeats.
#include "timeline/pattern_segments.hpp"

namespace gpudiag {
namespace {

constexpr std::size_t kAnchors = 64;
// Those nearest to the turn say most exactly where it is.
constexpr std::size_t kAtEachEnd = 12;
constexpr std::size_t kCycles = 4;
constexpr std::size_t kLeastCycles = 3;  // of two, much is alike by accident
// Of a cycle's length, by which one launch in a hundred that is lost or too many moves the others.
constexpr double kApart = 0.01;
// From so many launches of an optimizer beside each other on.
constexpr std::uint64_t kTogetherFrom = 4;

struct Sighting {
  std::uint64_t key = 0;
  std::size_t cycle = 0;
  std::size_t position = 0;
};

struct Cycles {
  std::vector<Stretch> all;  ///< the newest first
  std::size_t whole = 0;     ///< of them, those from turn to turn; of the others only the end is of the cycle
};

/// Of what is much longer than usual, as something came between, the end counts only where there is too
/// little else.
Cycles cycles_between(std::span<const std::size_t> turns) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 1; i < turns.size(); ++i) lengths.push_back(turns[i] - turns[i - 1]);
  std::vector<std::size_t> copy = lengths;
  std::ranges::sort(copy);
  const std::size_t usual = copy[(copy.size() - 1) / 2];
  const auto is_longer = [&](std::size_t i) { return lengths[i] > usual + usual / 4 + 2; };
  Cycles cycles;
  for (std::size_t i = lengths.size(); i-- > 0 && cycles.all.size() < kCycles;)
    if (!is_longer(i)) cycles.all.push_back({turns[i], turns[i + 1]});
  cycles.whole = cycles.all.size();
  for (std::size_t i = lengths.size(); i-- > 0 && cycles.all.size() < kLeastCycles;)
    if (is_longer(i)) cycles.all.push_back({turns[i + 1] - usual, turns[i + 1]});
  return cycles;
}

std::vector<Sighting> sightings(std::span<const Launch> launches, std::span<const Stretch> cycles) {
  std::vector<Sighting> found;
  for (std::size_t cycle = 0; cycle < cycles.size(); ++cycle) {
    for (std::size_t at = std::max<std::size_t>(2, cycles[cycle].begin); at < cycles[cycle].end; ++at)
      found.push_back({triple(launches[at - 2].symbol, launches[at - 1].symbol, launches[at].symbol), cycle, at});
  }
  std::ranges::sort(found, [](const Sighting& a, const Sighting& b) {
    return std::tie(a.key, a.cycle, a.position) < std::tie(b.key, b.cycle, b.position);
  });
  return found;
}

double spread(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax_element(values);
  return *most - *least;
}

/// Where in the cycle it comes; none where that changes: a launch that was lost makes triples of its own,
/// and in many layers the same one may be made in each cycle.
std::optional<Anchor> anchor_of(std::span<const Sighting> of_one, std::span<const Stretch> cycles) {
  std::vector<std::int64_t> from_start, to_end;
  std::vector<double> start, end, part;
  for (const Sighting& sighting : of_one) {
    const Stretch cycle = cycles[sighting.cycle];
    from_start.push_back(static_cast<std::int64_t>(sighting.position - cycle.begin));
    to_end.push_back(static_cast<std::int64_t>(cycle.end - sighting.position));
    start.push_back(static_cast<double>(from_start.back()));
    end.push_back(static_cast<double>(to_end.back()));
    part.push_back(start.back() / static_cast<double>(cycle.size()));
  }
  const double length = static_cast<double>(cycles.front().size());
  const double apart = 2 + kApart * length;
  if (spread(start) > apart && spread(end) > apart && spread(part) * length > apart) return std::nullopt;
  return Anchor{of_one.front().key, median_of(from_start), median_of(to_end)};
}

/// All keys that come at most once a cycle, and in all cycles but `missing`; those at the turn itself only
/// where it is one from cycle to cycle.
std::vector<Anchor> once_in_each(std::span<const Sighting> sightings, const Cycles& cycles, std::size_t missing) {
  std::vector<Anchor> found;
  for (std::size_t begin = 0, end = 0; begin < sightings.size(); begin = end) {
    bool twice = false;
    for (end = begin + 1; end < sightings.size() && sightings[end].key == sightings[begin].key; ++end)
      twice = twice || sightings[end].cycle == sightings[end - 1].cycle;
    if (twice || end - begin + missing < cycles.whole) continue;
    const auto anchor = anchor_of(sightings.subspan(begin, end - begin), cycles.all);
    if (anchor && (anchor->from_start < 3 || end - begin + missing >= cycles.all.size())) found.push_back(*anchor);
  }
  return found;
}

std::vector<Anchor> thinned(std::vector<Anchor>&& all) {
  std::ranges::sort(all, [](const Anchor& a, const Anchor& b) { return std::tie(a.from_start, b.to_end, a.key) < std::tie(b.from_start, a.to_end, b.key); });
  if (all.size() <= kAnchors) return std::move(all);
  std::vector<Anchor> kept;
  const std::size_t between = kAnchors - 2 * kAtEachEnd, inner = all.size() - 2 * kAtEachEnd;
  for (std::size_t i = 0; i < kAtEachEnd; ++i) kept.push_back(all[i]);
  for (std::size_t i = 0; i < between; ++i) kept.push_back(all[kAtEachEnd + i * inner / between]);
  for (std::size_t i = all.size() - kAtEachEnd; i < all.size(); ++i) kept.push_back(all[i]);
  return kept;
}

// Cycles with the same copies to the device and yet of other lengths: loops over time steps. An
// evaluation between two turns has copies of its own.
bool varies(std::span<const Launch> launches, std::span<const std::size_t> turns, std::size_t usual) {
  std::vector<std::size_t> copies(turns.size() - 1);
  for (std::size_t i = 0; i + 1 < turns.size(); ++i)
    for (std::size_t at = turns[i]; at < turns[i + 1]; ++at) copies[i] += launches[at].kind == LaunchKind::kToDevice ? 1 : 0;
  std::vector<std::size_t> copy = copies;
  const std::size_t usual_copies = median_of(copy);
  for (std::size_t i = 0; i + 1 < turns.size(); ++i) {
    const std::size_t length = turns[i + 1] - turns[i];
    const std::size_t apart = std::max(length, usual) - std::min(length, usual);
    if (usual_copies > 0 && copies[i] == usual_copies && 20 * apart > usual + 40) return true;
  }
  return false;
}

// Launches of optimizers in a cycle: where several stand together a single one elsewhere is none.
void count_optimizers(std::span<const Launch> launches, std::span<const Stretch> cycles, CyclePattern& pattern) {
  std::vector<std::uint64_t> all, together;
  for (const Stretch& cycle : cycles) {
    std::uint64_t seen = 0, beside = 0;
    std::int64_t last = INT64_MIN / 2;
    for (std::size_t i = cycle.begin; i < cycle.end; ++i) {
      if (!launches[i].optimizer) continue;
      ++seen;
      if (static_cast<std::int64_t>(i) - last <= kTogether) ++beside;
      last = static_cast<std::int64_t>(i);
    }
    all.push_back(seen);
    together.push_back(beside);
  }
  const std::uint64_t beside = median_of(together);
  pattern.together = beside >= kTogetherFrom;
  pattern.optimizers = pattern.together ? beside : *std::ranges::min_element(all);
}

}  // namespace

CyclePattern anchor(std::span<const Launch> launches, std::span<const std::size_t> turns) {
  if (turns.size() < 3) return {};
  const Cycles cycles = cycles_between(turns);
  if (cycles.all.size() < kLeastCycles) return {};
  const std::vector<Sighting> seen = sightings(launches, cycles.all);
  std::vector<Anchor> anchors = once_in_each(seen, cycles, 0);
  // Of noisy cycles few triples are in all; two of three may be alike by accident.
  if (anchors.size() < 3 && cycles.whole == kCycles) anchors = once_in_each(seen, cycles, 1);
  CyclePattern pattern;
  pattern.anchors = thinned(std::move(anchors));
  std::vector<std::size_t> lengths;
  for (const Stretch& cycle : cycles.all) lengths.push_back(cycle.size());
  pattern.length = static_cast<std::int64_t>(median_of(lengths));
  pattern.varying = varies(launches, turns, static_cast<std::size_t>(pattern.length));
  count_optimizers(launches, cycles.all, pattern);
  return pattern;
}

}  // namespace gpudiag
