// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// The whole engine behind one door: records in, ledgers out. Live and recorded runs use the same one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attribution/ledger.hpp"
#include "record/names.hpp"
#include "record/sink.hpp"
#include "timeline/pattern_tracker.hpp"
#include "timeline/quality.hpp"

namespace gpudiag {

/// `regex=cause` or `regex=cause:sub_cause` or `regex=iteration`; see timeline/range_table.hpp.
struct EngineOptions {
  std::vector<std::string> range_rules;   ///< user rules, tried before the built-in ones, in order
  std::string iteration_pattern;          ///< regex over range names; empty: the built-in pattern
  DurationNs dispatch_limit = microseconds(250);  ///< longer silence between calls is `host` (section 3)
  DurationNs launch_latency = microseconds(20);   ///< ordinary latency after a launch returns (section 3)
  std::uint32_t launch_queue_depth = 1024;
  DurationNs window = seconds(1);         ///< of a job without marks
  bool launch_pattern = true;             ///< iterations that nobody marked are sought in the launches
  DurationNs pattern_patience = seconds(10);  ///< so long windows wait for them at the start
  DurationNs give_up_after = seconds(10); ///< an iteration closes as missing_records
  /// Bounds memory: above it an iteration is summed in parts. A record costs some 170 bytes here.
  std::size_t pending_records_limit = 100'000;
};

/// What became of the search for iterations that nobody marked (docs/iterations.md).
struct PatternState {
  enum Stage : std::uint8_t {
    kLooking,    ///< or not needed: they are marked
    kUndecided,  ///< none found so far: windows instead
    kFound,
    kLost,       ///< found, but what is launched now is something else
  };
  Stage stage = kLooking;
  std::size_t launches = 0;  ///< of an iteration
  CycleEvidence evidence = CycleEvidence::kOptimizer;

  bool operator==(const PatternState&) const = default;
};

/// One sentence for people; empty while there is nothing to say.
std::string describe(const PatternState& state);

using IterationCallback = std::function<void(const IterationLedger&)>;

/// A deterministic function of the sequence of records: the same records in the same order give the
/// same ledgers, bit for bit, and as long as nothing closed in between the order does not matter.
/// Sees no clock, no environment, no CUDA. Not thread-safe: one thread at a time. Does not throw for
/// any content of records; bad records are counted in `quality()`.
class Engine final : public RecordSink {
 public:
  /// `names` must outlive the engine and hold every NameId of the records.
  Engine(const EngineOptions& options, const NameTable& names, IterationCallback on_iteration);
  ~Engine() override;

  void add(const Record& record) override;
  /// No record will follow: closes what is open, the last iteration as partial.
  void finish();
  /// Defects so far, over all records.
  const Quality& quality() const;
  PatternState pattern() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpudiag
