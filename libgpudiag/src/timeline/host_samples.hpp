// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// What our own watcher saw of threads and workers, in order of time, and what that comes to for a
// stretch of host time.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "record/ids.hpp"
#include "record/record.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// One look: at `end`; `start` is the look before.
struct HostSample {
  TimePoint start;
  TimePoint end;
  ThreadId thread{};
  HostState state = HostState::kUnknown;
  std::uint16_t flags = 0;
  DurationNs running;
  DurationNs queued;
  NameId name{};

  bool has(std::uint16_t flag) const { return (flags & flag) != 0; }
  DurationNs length() const { return end - start; }
};

/// How a stretch of time was spent. The parts never exceed the stretch; what is missing is not known.
struct HostTimes {
  DurationNs running;   ///< on a processor
  DurationNs queued;    ///< ready, without a processor
  DurationNs lock;
  DurationNs network;
  DurationNs disk;
  DurationNs fault;
  DurationNs pipe;
  DurationNs log;
  DurationNs asleep;

  /// What of it is blocked in `state`; null for states that are no place to be blocked in.
  DurationNs* blocked_in(HostState state);
  void add(const HostTimes& other);
};

/// A thread's time in a stretch, by the looks that fell into it.
struct ThreadTimes {
  HostTimes times;
  /// Where it was last held up, by the state it was found in.
  std::array<NameId, static_cast<std::size_t>(HostState::kGone) + 1> names{};
  bool children_known = false; ///< the process's children could be listed
};

/// What the workers did up to the end of a wait.
struct WorkerTimes {
  HostTimes busy;           ///< summed over the workers that had something to do
  DurationNs busy_total;    ///< length of their looks
  std::size_t workers = 0;  ///< seen
  std::size_t active = 0;   ///< with something to do for half of the time
  bool processors_known = false;
  bool processors_full = false;
  bool just_born = false;   ///< one of them was made just before the wait, or in it
};

class HostSamples {
 public:
  void add(const Record& record);
  bool empty() const { return samples_.empty(); }
  /// Nothing where no look fell into [start, end).
  std::optional<ThreadTimes> thread_in(ThreadId thread, TimePoint start, TimePoint end) const;
  /// Nothing where no worker was seen.
  std::optional<WorkerTimes> workers_in(TimePoint start, TimePoint end) const;
  void forget_before(TimePoint frontier);

 private:
  std::vector<HostSample>::const_iterator first_after(TimePoint t) const;

  std::vector<HostSample> samples_;  ///< by end
};

}  // namespace gpudiag
