// SPDX-License-Identifier: Apache-2.0
// Flow: jobs -> [program] -> machine -> tracer -> engine under test; judge compares.
// What a simulated training job does: a list of actions for each host thread. Every length is
// decided here, when the program is written, and never depends on when an action runs. So two
// programs that differ in one action differ in nothing else, and removing an action from a program
// is what "the same job without that cause" means. No rule of attribution occurs anywhere in here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/cause.hpp"
#include "record/record.hpp"

namespace gpudiag::truth {

enum class Do : std::uint8_t {
  kWork,         ///< host code without a CUDA call, for `host`
  kLaunch,       ///< kernel of `device_time` on `stream`
  kGraphLaunch,  ///< `count` kernels of `device_time` each on `stream` by one call
  kCopy,         ///< `copy`, `count` bytes; `blocks`: the caller waits until it is done
  kRecord,       ///< record `event` on `stream`
  kStreamWait,   ///< `stream` waits for `event`
  kStreamSync,
  kDeviceSync,
  kEventSync,
  kQuery,  ///< asks whether `event` is done
  kMalloc,
  kFree,
  kHostMalloc,
  kEnter,
  kLeave,  ///< range `name`
  kMark,   ///< an iteration ends here
  kTake,
  kPut,  ///< counting semaphore `semaphore`: wait for one, give one; no CUDA call, no record
};

struct Action {
  Do what = Do::kWork;
  DurationNs host{};         ///< time of the caller's own, blocking not included
  DurationNs device_time{};  ///< length of the operation
  DurationNs latency{};      ///< from the end of the call to the earliest start of the operation
  std::uint64_t count = 0;
  std::uint32_t stream = 0;
  std::uint32_t device = 0;
  std::uint32_t event = 0;
  std::uint32_t semaphore = 0;
  std::uint32_t name = 0;  ///< index into Program::names
  CopyKind copy = CopyKind::kUnknown;
  RangeSource range = RangeSource::kAnnotation;
  Cause cause = Cause::kUnknown;  ///< of a hook's range; unknown: the name says it
  SubCause sub_cause = SubCause::kNone;
  bool blocks = false;
  bool pageable = false;
  bool failed = false;  ///< of kMalloc: there is no memory
};

struct Script {
  std::string name;
  std::vector<Action> actions;
  bool traced = true;   ///< false: another process, of which the tracer sees nothing
  bool daemon = false;  ///< repeats its actions until all others have ended
};

struct Stream {
  std::uint32_t device = 0;
  /// False: nothing the job's own streams do ever waits for this one.
  bool foreground = true;
};

struct Program {
  std::vector<Script> scripts;
  std::vector<Stream> streams;
  std::uint32_t events = 0;
  std::vector<std::uint32_t> semaphores;  ///< initial counts
  std::vector<std::string> names{""};
  std::uint32_t devices = 1;
  std::uint32_t queue_depth = 1024;

  std::uint32_t name(std::string_view text) {
    for (std::uint32_t i = 0; i < names.size(); ++i)
      if (names[i] == text) return i;
    names.emplace_back(text);
    return static_cast<std::uint32_t>(names.size() - 1);
  }
};

/// A source of noise that depends on what it is for (seed, purpose, iteration) and on nothing that
/// happened before, so that one part of a program keeps its noise when another part is left out.
class Noise {
 public:
  Noise(std::uint64_t seed, std::string_view purpose, std::uint64_t iteration = 0)
      : state_(mix(mix(seed ^ hash(purpose)) ^ iteration)) {}

  /// Uniform in [0, limit).
  std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : next() % limit; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  /// `mean`, give or take up to `percent`.
  DurationNs around(DurationNs mean, std::int64_t percent) {
    const std::int64_t span = mean.ns * percent / 100;
    return {mean.ns - span +
            static_cast<std::int64_t>(below(static_cast<std::uint64_t>(2 * span + 1)))};
  }

 private:
  static constexpr std::uint64_t hash(std::string_view text) {
    std::uint64_t h = 0xcbf29ce484222325u;
    for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return h;
  }
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::uint64_t next() { return state_ = mix(state_); }

  std::uint64_t state_;
};

}  // namespace gpudiag::truth
