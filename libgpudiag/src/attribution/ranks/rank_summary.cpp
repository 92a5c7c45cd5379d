// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/rank_summary.hpp"

#include "attribution/ledger_sum.hpp"

namespace gpudiag {

RankIteration rank_iteration_of(const IterationLedger& ledger) {
  RankIteration iteration;
  iteration.index = ledger.index;
  iteration.phase = ledger.phase;
  iteration.partial = ledger.partial;
  iteration.valid = ledger.valid();
  iteration.start = ledger.start;
  iteration.wall = ledger.wall;
  iteration.compute = ledger.compute;
  iteration.communication = ledger.communication;
  iteration.copy = ledger.copy;
  iteration.idle = ledger.idle;
  iteration.idle_by_cause = ledger.idle_by_cause;
  SubCauseTimes times;
  for (const Evidence& evidence : ledger.evidence) times.add(evidence);
  for (std::size_t c = 0; c < kCauseCount; ++c)
    iteration.sub_causes[c] = times.dominant(static_cast<Cause>(c));
  return iteration;
}

}  // namespace gpudiag
