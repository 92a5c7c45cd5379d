// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// Gathers the iterations of one rank and sums them up; reporters print what it holds.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attribution/findings.hpp"
#include "attribution/steady.hpp"
#include "report/ledger_spool.hpp"
#include "report/session_json.hpp"

namespace gpudiag {

/// One device of a rank over all its iterations.
struct DeviceSummary {
  std::string name;
  LedgerSum all;     ///< over the valid iterations
  LedgerSum steady;  ///< over complete, valid training iterations after warm-up
  LedgerSum judged;  ///< over the valid ones that say most of the job: training, else evaluation, else windows
  std::uint64_t iterations = 0;
  std::uint64_t windows = 0;  ///< of the iterations, those that nothing marked
  std::uint64_t partial = 0;
  std::uint64_t empty = 0;
  std::uint64_t invalid = 0;
  std::uint64_t training = 0; ///< complete ones; after close()
  std::uint64_t warm_up = 0;  ///< of those, the ones before the steady ones
  DurationNs median_wall;     ///< of complete training iterations; 0 without any
  DurationNs longest_wall;

  bool is_steady() const { return steady.iterations >= kSteadyNeeded; }
  const LedgerSum& basis() const { return is_steady() ? steady : judged; }
};

/// Memory: eight bytes an iteration, beside the spool.
class RankCollector {
 public:
  /// `memory_limit` of its spool: many ranks are kept at once where they are to be compared.
  explicit RankCollector(SessionInfo info, std::size_t memory_limit = 4 << 20)
      : info_{std::move(info)}, spool_{memory_limit} {}

  void add(const IterationLedger& ledger);
  void add_device(const DeviceInfo& device) { devices_[device.device].name = device.name; }
  void add_note(SessionNote note) { notes_.push_back(std::move(note)); }
  void set_quality(const Quality& quality) { quality_ = quality; }
  /// Whether the job closed its session in order.
  void set_finished(bool finished) { finished_ = finished; }
  /// What the ranks' comparison found; before close().
  void set_waits(AddedWaits waits) {
    waits_known_ = !waits.empty();
    spool_.set_waits(std::move(waits));
  }
  /// After the last add(): finds the steady iterations. Call once.
  void close();

  SessionInfo& info() { return info_; }
  const SessionInfo& info() const { return info_; }
  const std::map<DeviceId, DeviceSummary>& devices() const { return devices_; }
  const LedgerSpool& iterations() const { return spool_; }
  const Quality& quality() const { return quality_; }
  const std::vector<SessionNote>& notes() const { return notes_; }
  bool finished() const { return finished_; }
  /// What the findings are made of; after close().
  const RankBasis& basis() const { return basis_; }

 private:
  void find_steady();
  /// Of the phases that have valid iterations, the one that says most of the job.
  Phase judged_phase() const;
  bool rests_on_steady() const;
  void make_basis(const std::map<DeviceId, EvidenceSums>& all,
                  const std::map<DeviceId, EvidenceSums>& steady);

  SessionInfo info_;
  LedgerSpool spool_;
  TimePoint began_ = kTimeMax;  ///< start of the first window that was not empty
  std::map<DeviceId, DeviceSummary> devices_;
  std::map<DeviceId, std::vector<std::int64_t>> training_walls_;
  std::map<DeviceId, std::array<std::uint64_t, kPhaseNames.size()>> valid_by_phase_;
  Quality quality_;
  std::vector<SessionNote> notes_;
  bool finished_ = true;
  bool waits_known_ = false;
  RankBasis basis_;
};

}  // namespace gpudiag
