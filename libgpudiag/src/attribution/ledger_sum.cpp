// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger_sum.hpp"

#include <algorithm>
#include <tuple>

namespace gpudiag {
namespace {

void add_times(CauseTimes& to, const CauseTimes& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

// One summand that does not know leaves the sum unknown: a partial sum would read as a small wait.
void add_known(std::optional<DurationNs>& to, std::optional<DurationNs> from, bool first) {
  if (first) {
    to = from;
  } else if (to && from) {
    *to += *from;
  } else {
    to.reset();
  }
}

void add_answer(std::vector<WhatIfSum>& to, const WhatIfSum& answer) {
  const auto same = std::find_if(to.begin(), to.end(), [&](const WhatIfSum& known) {
    return known.without == answer.without;
  });
  if (same == to.end()) return to.push_back(answer);
  same->iterations += answer.iterations;
  same->wall += answer.wall;
  same->saved += answer.saved;
}

}  // namespace

void SubCauseTimes::add(const Entry& entry) {
  auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.cause == entry.cause && e.sub_cause == entry.sub_cause;
  });
  if (same == entries_.end()) {
    entries_.push_back(entry);
    return;
  }
  same->charged += entry.charged;
  same->host += entry.host;
}

void SubCauseTimes::add(const Evidence& evidence) {
  add(Entry{evidence.cause, evidence.sub_cause, evidence.charged, evidence.host});
}

void SubCauseTimes::add(const SubCauseTimes& other) {
  for (const Entry& entry : other.entries_) add(entry);
}

SubCause SubCauseTimes::dominant(Cause cause) const {
  const Entry* best = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.cause != cause) continue;
    const auto weight = [](const Entry& e) {
      return std::tuple{e.charged, e.host, -static_cast<int>(e.sub_cause)};
    };
    if (best == nullptr || weight(entry) > weight(*best)) best = &entry;
  }
  return best == nullptr ? SubCause::kNone : best->sub_cause;
}

void LedgerSum::add(const LedgerSum& other) {
  const bool first = iterations == 0;
  iterations += other.iterations;
  wall += other.wall;
  host_step += other.host_step;
  compute += other.compute;
  communication += other.communication;
  copy += other.copy;
  idle += other.idle;
  add_times(idle_by_cause, other.idle_by_cause);
  add_times(replay_cost, other.replay_cost);
  replay_cost_communication += other.replay_cost_communication;
  replay_cost_copy += other.replay_cost_copy;
  replay_cost_all_host += other.replay_cost_all_host;
  communication_total += other.communication_total;
  copy_total += other.copy_total;
  own += other.own;
  add_known(straggler_wait, other.straggler_wait, first);
  add_known(transfer, other.transfer, first);
  launches += other.launches;
  operations += other.operations;
  opaque_graphs += other.opaque_graphs;
  sub_causes.add(other.sub_causes);
  for (const WhatIfSum& answer : other.what_if) add_answer(what_if, answer);
}

void LedgerSum::add(const IterationLedger& ledger) { add(sum_of(ledger)); }

LedgerSum sum_of(const IterationLedger& ledger) {
  LedgerSum sum;
  sum.iterations = 1;
  sum.wall = ledger.wall;
  sum.host_step = ledger.host_step;
  sum.compute = ledger.compute;
  sum.communication = ledger.communication;
  sum.copy = ledger.copy;
  sum.idle = ledger.idle;
  sum.idle_by_cause = ledger.idle_by_cause;
  sum.replay_cost = ledger.replay_cost;
  sum.replay_cost_communication = ledger.replay_cost_communication;
  sum.replay_cost_copy = ledger.replay_cost_copy;
  sum.replay_cost_all_host = ledger.replay_cost_all_host;
  sum.communication_total = ledger.communication_total;
  sum.copy_total = ledger.copy_total;
  sum.own = ledger.own;
  sum.straggler_wait = ledger.straggler_wait;
  sum.transfer = ledger.transfer;
  sum.launches = ledger.launches;
  sum.operations = ledger.operations;
  sum.opaque_graphs = ledger.opaque_graphs;
  for (const WhatIf& answer : ledger.what_if)
    sum.what_if.push_back({answer.without, 1, ledger.wall, answer.saved});
  for (const Evidence& evidence : ledger.evidence) sum.sub_causes.add(evidence);
  return sum;
}

}  // namespace gpudiag
