// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Looks at what the job's threads and workers do while the GPU waits for them, from our own thread.
// While gaps are short it does nothing at all. docs/host-evidence.md says what it looks at.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "record/names.hpp"
#include "record/sink.hpp"
#include "sources/host/children.hpp"
#include "sources/host/processors.hpp"
#include "sources/host/thread_look.hpp"
#include "sources/host/watch_plan.hpp"

namespace gpudiag {

/// Not thread-safe: the drain thread owns it. Touches no thread of the job, no lock that one holds.
class Watcher {
 public:
  /// `name_of` interns a text; `out` takes the samples. Both outlive the watcher.
  Watcher(RecordSink& out, std::function<NameId(std::string_view)> name_of, TimePoint started);

  void call(ThreadId thread, Interval time) { plan_.call(thread, time); }
  void iteration(const IterationLedger& ledger, TimePoint at) { plan_.iteration(ledger, at); }
  void tick(TimePoint at) { plan_.tick(at); }

  /// When the next look is due; kTimeMax: not at all.
  TimePoint due() const;
  /// Looks, if that is due.
  void look(TimePoint at);

 private:
  struct Target {
    std::uint32_t id = 0;
    ThreadLook last;
    ProcessView view;  ///< of a child
  };
  void look_at_threads(TimePoint at);
  void look_at_workers(TimePoint at);
  void meet(const Child& child);
  void emit(Record record, const ThreadLook& seen, std::uint16_t flags);
  std::uint16_t flags() const;

  RecordSink& out_;
  std::function<NameId(std::string_view)> name_of_;
  TimePoint started_;
  WatchPlan plan_;
  ThreadLooker looker_;
  ProcessView own_view_;
  Processors processors_;
  Children children_;
  std::vector<Target> threads_;
  std::vector<Target> workers_;
  ProcessorsLook found_;
  bool children_known_ = false;
  TimePoint looked_at_ = kTimeMin;
  TimePoint workers_looked_at_ = kTimeMin;
};

}  // namespace gpudiag
