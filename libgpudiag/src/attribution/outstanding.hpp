// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Which launches and copies still wait for the record of their operation. An iteration is closed when
// none of its own does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/intake.hpp"
#include "timeline/store.hpp"

namespace gpudiag {

/// How long a copy's record is waited for before it is taken to have moved nothing, an operation's
/// launch before it is taken to be unrecorded, and operations that might still reach into a window
/// on another stream: twice the slowest delivery (200 ms between flushes, held back by one unfinished
/// record) with room to spare, and short enough for a line within two seconds.
inline constexpr DurationNs kPatience = seconds(1);

inline bool is_launch(ApiClass api) {
  return api == ApiClass::kLaunch || api == ApiClass::kGraphLaunch;
}

class Outstanding {
 public:
  Outstanding(const EngineOptions& options, const Intake& in) : options_(options), in_(in) {}

  /// The call should have an operation and none has come. A copy that began before `copies_until` is
  /// taken to have copied nothing.
  bool lacks_operation(const Call& call, TimePoint copies_until) const;
  /// No call from `first` on that began before `until` lacks its operation.
  bool complete(std::size_t first, TimePoint until) const;
  /// Looks at what the store holds by now: to be called when records have come.
  void note_progress();
  /// Keeps in mind the first `calls` of the store, which are about to be let go, as far as some of
  /// their operations may still come.
  void remember(std::size_t calls);
  bool remembers(CorrelationId correlation) const {
    return unfinished_.contains(raw(correlation));
  }

 private:
  const EngineOptions& options_;
  const Intake& in_;
  std::vector<TimePoint> joined_until_;  ///< by thread: its last call whose operation has come
  TimePoint last_operation_ = kTimeMin;  ///< end of the last operation that has come
  /// Calls that are gone while some of their operations may still come, by correlation: when they
  /// were let go.
  std::unordered_map<std::uint32_t, TimePoint> unfinished_;
};

}  // namespace gpudiag
