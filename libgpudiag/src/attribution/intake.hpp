// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Files each record where the engine will look for it, and counts what cannot be believed.
#pragma once

#include <vector>

#include "attribution/engine.hpp"
#include "timeline/host_samples.hpp"
#include "timeline/labels.hpp"
#include "timeline/loops.hpp"
#include "timeline/range_table.hpp"
#include "timeline/store.hpp"
#include "timeline/ties.hpp"

namespace gpudiag {

/// A time of which nothing, or not everything, was recorded.
struct Hole {
  Interval time;
  std::uint8_t reason = 0;  ///< index of an InvalidReason
  std::uint64_t count = 1;
  std::uint64_t counted_for = 0;  ///< devices of which an iteration has counted it, as bits
};

/// No session clock gets this far (2^61 ns are 73 years from its origin); beyond it sums would
/// overflow.
inline constexpr DurationNs kFarthest{std::int64_t{1} << 61};
/// Before anything a record can say, with room for sums.
inline constexpr TimePoint kBeforeAll{-2 * kFarthest.ns};

class Intake {
 public:
  Intake(const EngineOptions& options, const NameTable& names)
      : options_(options), names_(names), ranges_(options.range_rules, options.iteration_pattern, names),
        classifier_(names) {}

  void add(const Record& record);

  Store store;
  Ties ties;
  std::vector<ThreadLabels> labels;  ///< by thread
  HostSamples samples;               ///< of threads and workers
  std::vector<Loop> loops;
  std::vector<Hole> holes;
  Quality quality;
  ProcessId process{};
  TimePoint ticked = kBeforeAll;   ///< all that ended before has been delivered
  TimePoint first = kTimeMax;    ///< start of the earliest call or operation
  TimePoint last_start = kTimeMin;  ///< of the latest call or operation
  TimePoint first_call = kTimeMax;  ///< start of the earliest call
  std::uint32_t first_correlation = 0xffffffffu;  ///< the lowest id of a call

 private:
  std::uint16_t defects_of(const Record& record) const;
  void count_defect(const Record& record, std::uint16_t defects);
  void add_call(const Record& record);
  void add_operation(const Record& record);
  void add_sync(const Record& record);
  void add_range(const Record& record);
  void add_mark(const Record& record);
  void add_gap(Interval gap);
  Loop& loop_of(MarkSource source, Index thread);
  Index thread_of(ThreadId id);

  const EngineOptions& options_;
  const NameTable& names_;
  RangeTable ranges_;
  OperationClassifier classifier_;
};

}  // namespace gpudiag
