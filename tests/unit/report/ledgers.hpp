// SPDX-License-Identifier: Apache-2.0
// Literal ledgers for the tests of reports and findings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "attribution/ledger.hpp"

namespace gpudiag::test {

/// A valid training iteration of device 0: busy for `compute_ns`, idle as `idle` says, wall their
/// sum; the replay's cost of each cause is its charge.
inline IterationLedger ledger(std::uint64_t index, std::int64_t compute_ns,
                              std::vector<std::pair<Cause, std::int64_t>> idle = {}) {
  IterationLedger made;
  made.index = index;
  made.opened_by = MarkSource::kStep;
  made.compute = DurationNs{compute_ns};
  for (const auto& [cause, ns] : idle) {
    made.idle_by_cause[static_cast<std::size_t>(cause)] += DurationNs{ns};
    made.replay_cost[static_cast<std::size_t>(cause)] += DurationNs{ns};
    made.idle += DurationNs{ns};
  }
  made.wall = made.compute + made.idle;
  made.operations = 1;
  made.launches = 1;
  return made;
}

inline Evidence evidence(Cause cause, SubCause sub_cause, std::string what, std::int64_t charged_ns) {
  Evidence made;
  made.cause = cause;
  made.sub_cause = sub_cause;
  made.what = std::move(what);
  made.thread = ThreadId{7};
  made.count = 1;
  made.host = DurationNs{charged_ns};
  made.charged = DurationNs{charged_ns};
  return made;
}

}  // namespace gpudiag::test
