// SPDX-License-Identifier: Apache-2.0
// What the tests of the engine share: a job written down record by record, and its ledgers.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "support/analyse.hpp"
#include "support/records.hpp"

namespace gpudiag::testing {

struct EngineCase : ::testing::Test {
  NameTable names;
  std::vector<Record> records;
  EngineOptions options;

  void add(const Record& record) { records.push_back(record); }
  /// A kernel launched in [launch, launch + 5 us) that runs in [start, end) on stream 7 of device 0.
  void run_kernel(TimePoint launch, TimePoint start, TimePoint end, ThreadId on = thread(1),
                  StreamId queue = stream(7), DeviceId dev = device(0)) {
    const CorrelationId id = corr(++last_id);
    add(api(ApiClass::kLaunch, launch, launch + microseconds(5), id, on));
    add(kernel(queue, start, end, id, dev));
  }
  NameId name(std::string_view text) { return names.intern(text); }
  std::vector<IterationLedger> ledgers(DeviceId dev = device(0)) {
    const Analysis analysis = analyse(records, names, options);
    quality = analysis.quality;
    auto found = ledgers_of(analysis, dev);
    for (const IterationLedger& ledger : found) expect_identity(ledger);
    return found;
  }
  static void expect_identity(const IterationLedger& ledger) {
    EXPECT_EQ(ledger.wall, ledger.compute + ledger.communication + ledger.copy + ledger.idle);
    DurationNs sum;
    for (const DurationNs part : ledger.idle_by_cause) sum += part;
    EXPECT_EQ(sum, ledger.idle);
  }

  Quality quality;
  std::uint32_t last_id = 0;
};

inline DurationNs charged(const IterationLedger& ledger, Cause cause) {
  return ledger.idle_by_cause[static_cast<std::size_t>(cause)];
}
inline DurationNs cost(const IterationLedger& ledger, Cause cause) {
  return ledger.replay_cost[static_cast<std::size_t>(cause)];
}
inline std::uint64_t invalid(const IterationLedger& ledger, InvalidReason reason) {
  return ledger.invalid[static_cast<std::size_t>(reason)];
}

}  // namespace gpudiag::testing
