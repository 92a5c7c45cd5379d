// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// One device: its windows, the claims on its gaps, and the ledgers that come of them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "attribution/claims.hpp"
#include "attribution/ledger.hpp"
#include "attribution/replay.hpp"
#include "attribution/window_sweep.hpp"
#include "timeline/loops.hpp"

namespace gpudiag {

/// A window that waits for what is needed to charge its gaps.
struct PendingWindow {
  IterationLedger ledger;   ///< as far as known when the host's iteration ended
  EvidenceTable evidence;   ///< of the host's iteration
  Interval window;
  bool part = false;        ///< the iteration goes on in the next window
};

class DeviceLedger {
 public:
  DeviceLedger(Index device, DeviceId id) : device_(device), id_(id) {}

  DeviceId id() const { return id_; }
  bool opened() const { return opened_; }
  TimePoint boundary() const { return boundary_; }
  const std::deque<PendingWindow>& pending() const { return pending_; }
  /// Earliest time at which a gap may still begin that has not been charged.
  TimePoint charged_until() const { return charged_until_; }

  /// The host's iteration ended: moves the boundary to the end of what the chain launched last in it
  /// and returns the window in between, with replay costs. Empty where nothing was launched.
  PendingWindow end_host_iteration(Replay& replay, Ties& ties, const Store& store);
  /// The question in the asked world at `place` is another one from here on.
  void begin_anew(std::size_t place) {
    boundary_in_[kFirstAsked + place] = boundary_in_[kNullWorld];
    windows_asked_[place] = 0;
  }
  void push(PendingWindow&& window) { pending_.push_back(std::move(window)); }

  /// Forgets positions in the store.
  void reset_cursor() { cursor_ = 0; active_.clear(); }
  /// Charges the first pending window and adds it to the iteration's ledger; true when that is
  /// complete, then in `finished()`. False and nothing done where an operation that ends a gap of it
  /// has not been replayed, unless `force`.
  bool close_front(Replay& replay, Ties& ties, Store& store, const EngineOptions& options,
                   const NameTable& names, bool force);
  bool closed_part() const { return closed_part_; }
  const IterationLedger& finished() const { return finished_; }
  bool retired(const Operation& operation, TimePoint host_frontier) const {
    return operation.replayed && operation.end <= charged_until_ && operation.end <= host_frontier;
  }

 private:
  bool counts(const Operation& operation, Ties& ties) const;
  void gather(Interval window, Ties& ties, const Store& store);
  bool ready(Interval window, const Store& store) const;
  void sweep(PendingWindow& window, Replay& replay, Ties& ties, Store& store,
             const EngineOptions& options);
  void charge(const Gap& gap, PendingWindow& window, Replay& replay, Store& store,
              const EngineOptions& options);
  void open(Replay& replay, Ties& ties, const Store& store);

  Index device_;
  DeviceId id_;
  bool opened_ = false;
  TimePoint boundary_;
  Lanes boundary_in_{};
  TimePoint charged_until_ = kTimeMin;
  std::array<std::uint32_t, kAskedWorlds> windows_asked_{};  ///< since each question was asked
  std::uint64_t order_ = 0;  ///< launches up to the last boundary
  std::deque<PendingWindow> pending_;
  Claims claims_;
  TimePoint claimed_until_ = kTimeMin;  ///< operations that began before have passed the claims
  std::size_t cursor_ = 0;
  std::size_t next_cursor_ = 0;
  std::vector<Index> active_;
  std::vector<Index> gathered_;
  IterationLedger sum_;
  EvidenceTable sum_evidence_;
  bool sum_open_ = false;
  bool closed_part_ = false;
  IterationLedger finished_;
};

}  // namespace gpudiag
