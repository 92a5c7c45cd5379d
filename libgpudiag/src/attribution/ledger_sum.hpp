// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Sums of iteration ledgers: what a line over a range, the report's `all` and `steady`, and the
// findings are made of. Addition keeps the identity, so every sum obeys it exactly too.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attribution/ledger.hpp"

namespace gpudiag {

/// Idle time charged by cause and sub-cause, as far as the evidence kept in the ledgers names one.
class SubCauseTimes {
 public:
  struct Entry {
    Cause cause;
    SubCause sub_cause;
    DurationNs charged;
    DurationNs host;
  };

  void add(const Evidence& evidence);
  void add(const SubCauseTimes& other);
  /// The sub-cause of `cause` with the most charged time, host time where nothing is charged;
  /// kNone where most of it is evidence that names none: what a fraction was does not name the rest.
  SubCause dominant(Cause cause) const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void add(const Entry& entry);
  std::vector<Entry> entries_;
};

/// The answers to one question, over the iterations that have one.
struct WhatIfSum {
  Question without{};
  std::uint64_t iterations = 0;
  DurationNs wall;   ///< of those iterations
  DurationNs saved;
};

/// Sum over iterations of one device, or over devices. A value; `[any thread]` as such.
struct LedgerSum {
  std::uint64_t iterations = 0;
  DurationNs wall;
  DurationNs host_step;
  DurationNs compute;
  DurationNs communication;
  DurationNs copy;
  DurationNs idle;
  CauseTimes idle_by_cause{};
  CauseTimes replay_cost{};
  DurationNs replay_cost_communication;
  DurationNs replay_cost_copy;
  DurationNs replay_cost_all_host;
  DurationNs communication_total;
  DurationNs copy_total;
  DurationNs own;
  std::optional<DurationNs> straggler_wait;  ///< known only if known of every summand
  std::optional<DurationNs> transfer;
  std::uint64_t launches = 0;
  std::uint64_t operations = 0;
  std::uint64_t opaque_graphs = 0;
  SubCauseTimes sub_causes;
  std::vector<WhatIfSum> what_if;  ///< by question, in order of appearance

  /// Whether the ledger is valid is the caller's question.
  void add(const IterationLedger& ledger);
  void add(const LedgerSum& other);

  DurationNs idle_of(Cause cause) const { return idle_by_cause[static_cast<std::size_t>(cause)]; }
  DurationNs cost_of(Cause cause) const { return replay_cost[static_cast<std::size_t>(cause)]; }
};

/// The sum that holds this one ledger.
LedgerSum sum_of(const IterationLedger& ledger);

}  // namespace gpudiag
