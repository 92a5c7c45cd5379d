// SPDX-License-Identifier: Apache-2.0
#include "case_job.hpp"

namespace gpudiag::testing {
namespace {

constexpr DurationNs kFlush = milliseconds(200);  // as a live run hands records over

}  // namespace

Record CaseJob::run(RecordKind kind, DurationNs runs) {
  constexpr DurationNs kLatency = microseconds(3);
  const TimePoint start = std::max(now_ + kLatency, gpu_free_);
  gpu_free_ = start + runs;
  return operation(kind, kStream, start, gpu_free_, corr(last_id_));
}

void CaseJob::analyse() {
  std::stable_sort(records_.begin(), records_.end(),
                   [](const Record& a, const Record& b) { return a.end < b.end; });
  Engine engine(options, names_, [&](const IterationLedger& ledger) {
    ledgers_.push_back(ledger);
    collector_.add(ledger);
  });
  TimePoint next_tick = TimePoint{} + kFlush;
  for (const Record& record : records_) {
    for (; next_tick <= record.end; next_tick += kFlush) engine.add(tick(next_tick));
    engine.add(record);
  }
  engine.finish();
  collector_.set_quality(engine.quality());
  collector_.close();
  diagnosis_ = diagnose({&collector_.basis(), 1});
}

}  // namespace gpudiag::testing
