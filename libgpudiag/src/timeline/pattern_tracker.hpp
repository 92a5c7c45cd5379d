// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// Follows a cycle of launches that has been found: a few triples of launches that come once a cycle are
// its anchors, and their order says where the loop stands.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/launch_names.hpp"

namespace gpudiag {

/// Three launches in a row, as one number.
constexpr std::uint64_t triple(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint64_t hash = (std::uint64_t{a} << 32 | b) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 29) ^ c) * 0xbf58476d1ce4e5b9u;
  return hash ^ (hash >> 32);
}

struct Anchor {
  std::uint64_t key = 0;
  std::int64_t from_start = 0;  ///< launches from the cycle's first one to the triple's last
  std::int64_t to_end = 1;      ///< and from there to the next cycle's first
};

/// What the cycle was known by.
enum class CycleEvidence : std::uint8_t {
  kOptimizer,  ///< kernels whose names say that they update parameters
  kRuns,       ///< long runs of few kernels, as an optimizer that goes over all parameters launches
  kOpener,     ///< a copy to the device, a pause of the host or a graph that opens each cycle
};

/// How far from each other launches of an optimizer may be that stand together.
inline constexpr std::int64_t kTogether = 2;

struct CyclePattern {
  std::vector<Anchor> anchors;  ///< in the order of the cycle; never empty
  std::int64_t length = 0;      ///< launches
  std::uint64_t optimizers = 0; ///< of them, an optimizer's
  bool together = false;        ///< only those count that stand beside another one
  bool varying = false;         ///< the length is not the same from cycle to cycle
  CycleEvidence evidence = CycleEvidence::kOptimizer;
};

enum class TurnKind : std::uint8_t {
  kOpening,     ///< what ends here is what came before the first iteration
  kTraining,    ///< an iteration ends here
  kEvaluation,  ///< what ends here is no iteration: launches without an optimizer's between two of them
};

/// The loop turns before launch `index`.
struct Turn {
  std::uint64_t index = 0;
  TimePoint after;  ///< where the host's longest silence before that launch began
  TimePoint start;  ///< of the call that opens the iteration
  TurnKind kind = TurnKind::kTraining;
};

/// [hot]-ish: a hash and a look-up a launch; no allocation but for turns.
class PatternTracker {
 public:
  /// `index` of the first launch that will be added.
  PatternTracker(const CyclePattern& cycle, std::uint64_t index);

  void add(const Launch& launch, std::vector<Turn>& turns);
  /// Nothing follows.
  void finish(std::vector<Turn>& turns);

  /// Launches since the last complete cycle.
  std::uint64_t since_complete() const { return static_cast<std::uint64_t>(position_ - last_complete_); }

 private:
  struct Place {
    TimePoint after;
    TimePoint start;
    std::uint64_t optimizers = 0;  ///< launches of optimizers before
  };
  /// The cycle that seems to be under way.
  struct Cycle {
    bool open = false;
    bool start_known = false;
    bool complete = false;
    std::int64_t start = 0;
    std::int64_t end = 0;   ///< where it will turn, by its last anchor
    std::size_t anchor = 0; ///< the last one that came
    std::int64_t at = 0;    ///< and where
    std::size_t seen = 0;
  };

  static constexpr std::size_t kNoAnchor = ~std::size_t{0};
  std::size_t find(std::uint64_t key) const;
  void meet(std::size_t anchor, std::vector<Turn>& turns);
  bool fits(const Cycle& cycle, std::size_t anchor) const;
  Cycle opened(std::size_t anchor) const;
  void advance(Cycle& cycle, std::size_t anchor) const;
  void check(std::vector<Turn>& turns);
  bool takes_over() const;
  void take_over(std::vector<Turn>& turns);
  void close(std::int64_t end, std::vector<Turn>& turns);
  void completed(std::vector<Turn>& turns);
  void tell_stretch(std::int64_t end, std::vector<Turn>& turns);
  std::int64_t last_optimizer_before(std::int64_t end) const;
  void announce(std::int64_t index, TurnKind kind, std::vector<Turn>& turns);
  const Place& place(std::int64_t index) const;

  struct Slot {
    std::uint64_t key = 0;
    std::size_t anchor = kNoAnchor;
  };
  std::vector<Anchor> anchors_;
  std::vector<Slot> slots_;
  std::int64_t length_;
  bool together_;
  bool varying_;
  std::uint64_t optimizers_needed_;  ///< launches of optimizers that make a stretch an iteration
  std::int64_t slack_;      ///< launches by which a cycle may be longer before something else is said to come
  std::vector<Place> ring_;
  std::int64_t oldest_;     ///< index of the first launch that was added
  std::int64_t position_;   ///< index of the launch that is looked at
  std::uint32_t before_[2] = {0, 0};
  std::uint64_t optimizers_ = 0;
  std::int64_t last_optimizer_ = INT64_MIN / 2;
  Cycle cycle_;
  Cycle other_;  ///< another one that may be
  std::int64_t deadline_ = INT64_MAX;  ///< a complete cycle has ended at the latest here
  bool announced_ = false;
  std::int64_t last_turn_ = 0;
  std::uint64_t turn_optimizers_ = 0;  ///< launches of optimizers before the last turn
  std::int64_t last_complete_;
};

}  // namespace gpudiag
