// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// One rank's records and ledgers in, its summary out, iteration by iteration: what a live session writes
// and what the readers of traces gather. Records go through it to the engine.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "attribution/ranks/collective_watch.hpp"
#include "attribution/ranks/rank_summary.hpp"

namespace gpudiag {

/// Not thread-safe.
class RankRecorder final : public RecordSink {
 public:
  /// An iteration of a device is complete. `uses` by arrival; `abouts` grows from call to call.
  using OnIteration = std::function<void(DeviceId device, const RankIteration& iteration,
                                         std::span<const CollectiveUse> uses, std::span<const CollectiveInfo> abouts)>;

  /// `rules` as CommunicationTable takes them; `next`, the engine, may be null. Both and `names` must outlive it.
  RankRecorder(const NameTable& names, RecordSink* next, OnIteration on_iteration,
               const std::vector<std::string>& rules = {})
      : watch_{names, rules}, next_{next}, on_iteration_{std::move(on_iteration)} {}

  void set_next(RecordSink* next) { next_ = next; }
  void add(const Record& record) override {
    watch_.add(record);
    if (next_ != nullptr) next_->add(record);
  }
  /// A ledger of the engine, in its order.
  void iteration(const IterationLedger& ledger);

 private:
  CollectiveWatch watch_;
  RecordSink* next_;
  OnIteration on_iteration_;
};

/// Keeps what a RankRecorder hands over, a summary for each device.
class SummaryBuilder {
 public:
  explicit SummaryBuilder(RankIdentity who) : who_{std::move(who)} {}

  void add(DeviceId device, const RankIteration& iteration, std::span<const CollectiveUse> uses,
           std::span<const CollectiveInfo> abouts);
  /// Of the devices that took part in a collective; where none did, of the first one.
  std::vector<RankSummary> take();

 private:
  RankIdentity who_;
  std::map<DeviceId, RankSummary> devices_;
};

}  // namespace gpudiag
