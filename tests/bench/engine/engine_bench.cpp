// SPDX-License-Identifier: Apache-2.0
//
// What a record costs the drain thread, for a training job that never ends: charging it (sanitizer
// and engine), decoding it from a genuine CUPTI buffer, and both together, which is what a session
// pays. Times are of the thread's processor time, so that other programs show less; making the records
// is not in them.
//
//   engine_bench --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "activity_buffers.hpp"
#include "attribution/engine.hpp"
#include "record/clock.hpp"
#include "sources/cupti/decode.hpp"
#include "sources/sanitizer.hpp"
#include "training_stream.hpp"

namespace gpudiag::bench {
namespace {

// The engine's books must be as full as in a job that has run for a while.
constexpr int kWarmUpRounds = 15;

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

class Discard final : public RecordSink {
 public:
  void add(const Record& record) override { benchmark::DoNotOptimize(&record); }
};

/// Counts and times; one benchmark iteration is one round of 200 ms of the job.
class Meter {
 public:
  explicit Meter(benchmark::State& state) : state_{state} {}
  template <typename Work>
  void round(std::size_t records, Work&& work) {
    const double before = thread_seconds();
    work();
    const double took = thread_seconds() - before;
    state_.SetIterationTime(took);
    records_ += records;
    rounds_.push_back(took * 1e9 / static_cast<double>(records));
  }
  /// The median is what to quote; the tenth best of a hundred is what a quiet machine would show.
  ~Meter() {
    std::ranges::sort(rounds_);
    state_.counters["records_per_round"] = static_cast<double>(records_) / static_cast<double>(rounds_.size());
    state_.counters["ns_per_record"] = rounds_[rounds_.size() / 2];
    state_.counters["ns_p10"] = rounds_[rounds_.size() / 10];
  }

 private:
  benchmark::State& state_;
  std::vector<double> rounds_;  // ns a record
  std::size_t records_ = 0;
};

JobShape with_events() {
  JobShape shape;
  shape.events = true;
  return shape;
}

void charge_records(benchmark::State& state, const JobShape& shape) {
  NameTable names;
  TrainingStream job{shape, names};
  std::uint64_t ledgers = 0;
  Engine engine{{}, names, [&](const IterationLedger& ledger) { ledgers += ledger.valid() ? 1 : 0; }};
  Sanitizer sanitizer{engine};
  const auto feed = [&](const std::vector<Record>& round) {
    for (const Record& record : round) sanitizer.add(record);
  };
  for (int i = 0; i < kWarmUpRounds; ++i) feed(job.next_round());
  Meter meter{state};
  for (auto _ : state) {
    const auto& round = job.next_round();
    meter.round(round.size(), [&] { feed(round); });
  }
  if (ledgers == 0) state.SkipWithError("no valid iteration came out");
}
BENCHMARK_CAPTURE(charge_records, gpu_bound, gpu_bound())->UseManualTime();
BENCHMARK_CAPTURE(charge_records, host_bound, host_bound())->UseManualTime();
BENCHMARK_CAPTURE(charge_records, with_events, with_events())->UseManualTime();

/// A job's activities, and what decodes them.
struct Activities {
  explicit Activities(const JobShape& shape) : job{shape, names}, buffers{names}, decoder{table, names} {}
  const std::vector<Record>& next_round() {
    const auto& round = job.next_round();
    buffers.fill(round);
    filled = buffers.buffers();
    // An anchor whenever buffers have come, by clocks that drift apart a little.
    constexpr std::int64_t kAnchors = 4;
    for (std::int64_t i = kAnchors - 1; i >= 0; --i) {
      const TimePoint at = round.back().start - DurationNs{i * 50'000'000};
      clock.add({at.ns - at.ns / 1'000'000, at, at + DurationNs{60}});
    }
    return round;
  }
  void decode(RecordSink& sink) {
    for (const auto& buffer : filled) decoder.decode(buffer, clock, sink);
    decoder.finish_round(sink);
  }

  NameTable names;
  TrainingStream job;
  ActivityBuffers buffers;
  CuptiTable table = activity_table();
  ActivityDecoder decoder;
  ClockMap clock;
  std::vector<BufferPool::Filled> filled;
};

void decode_activities(benchmark::State& state, const JobShape& shape) {
  Activities activities{shape};
  Discard discard;
  Meter meter{state};
  for (auto _ : state) {
    activities.next_round();
    meter.round(activities.buffers.activities(), [&] { activities.decode(discard); });
  }
}
BENCHMARK_CAPTURE(decode_activities, gpu_bound, gpu_bound())->UseManualTime();

/// As a session does: marks and ranges come from the threads' logs, all else from CUPTI.
void decode_and_charge(benchmark::State& state, const JobShape& shape) {
  Activities activities{shape};
  std::uint64_t ledgers = 0;
  Engine engine{{}, activities.names, [&](const IterationLedger& ledger) { ledgers += ledger.valid() ? 1 : 0; }};
  Sanitizer sanitizer{engine};
  const auto feed = [&](const std::vector<Record>& round) {
    for (const Record& record : round)
      if (record.kind == RecordKind::kMark || record.kind == RecordKind::kRange) sanitizer.add(record);
    activities.decode(sanitizer);
    sanitizer.add(round.back());  // the tick
  };
  for (int i = 0; i < kWarmUpRounds; ++i) feed(activities.next_round());
  Meter meter{state};
  for (auto _ : state) {
    const auto& round = activities.next_round();
    meter.round(activities.buffers.activities(), [&] { feed(round); });
  }
  if (ledgers == 0) state.SkipWithError("no valid iteration came out");
}
BENCHMARK_CAPTURE(decode_and_charge, gpu_bound, gpu_bound())->UseManualTime();
BENCHMARK_CAPTURE(decode_and_charge, host_bound, host_bound())->UseManualTime();

}  // namespace
}  // namespace gpudiag::bench

BENCHMARK_MAIN();
