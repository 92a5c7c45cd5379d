// SPDX-License-Identifier: Apache-2.0
// Runs records through an Engine and keeps what comes out.
#pragma once

#include <span>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/ledger.hpp"
#include "record/names.hpp"
#include "record/record.hpp"
#include "timeline/quality.hpp"

namespace gpudiag::testing {

struct Analysis {
  std::vector<IterationLedger> ledgers;  ///< in the order in which the engine closed them
  Quality quality;
};

/// Adds `records` in their order, then finishes.
inline Analysis analyse(std::span<const Record> records, const NameTable& names,
                        const EngineOptions& options = {}) {
  Analysis analysis;
  Engine engine(options, names,
                [&](const IterationLedger& ledger) { analysis.ledgers.push_back(ledger); });
  for (const Record& record : records) engine.add(record);
  engine.finish();
  analysis.quality = engine.quality();
  return analysis;
}

/// Those of one device, in the order of time.
inline std::vector<IterationLedger> ledgers_of(const Analysis& analysis, DeviceId device) {
  std::vector<IterationLedger> found;
  for (const IterationLedger& ledger : analysis.ledgers)
    if (ledger.device == device) found.push_back(ledger);
  return found;
}

}  // namespace gpudiag::testing
