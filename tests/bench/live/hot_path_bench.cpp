// SPDX-License-Identifier: Apache-2.0
//
// What a call of ours costs the job's thread: with a session's log on, and without any session. Run it
// on an idle machine: hot_path_bench --benchmark_repetitions=5. Each benchmark drains the log outside
// its timing, as the drain thread does beside the job.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpudiag/gpudiag.h"
#include "record/clock.hpp"
#include "sources/cupti/callbacks.hpp"
#include "sources/cupti/decode.hpp"
#include "sources/host/now.hpp"
#include "sources/host/thread_log.hpp"

namespace gpudiag {
namespace {

void drain() {
  ThreadLogs::drain([](const HostMessage&, std::string_view) {});
}

/// Times single calls, so that the tail shows too: the clock's own cost, some 25 ns, is in them.
template <typename Call>
void measure_each(benchmark::State& state, Call&& call) {
  std::vector<std::int64_t> times;
  times.reserve(1 << 20);
  set_host_log(true);
  std::size_t calls = 0;
  for (auto _ : state) {
    const TimePoint before = now();
    call();
    const std::int64_t took = (now() - before).ns;
    if (times.size() < times.capacity()) times.push_back(took);
    if (++calls % 256 == 0) {
      state.PauseTiming();
      drain();
      state.ResumeTiming();
    }
  }
  set_host_log(false);
  drain();
  std::ranges::sort(times);
  const auto at = [&](double share) {
    return static_cast<double>(times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))]);
  };
  state.counters["p50_ns"] = at(0.5);
  state.counters["p99_ns"] = at(0.99);
  state.counters["p99.9_ns"] = at(0.999);
}

void api_callback(benchmark::State& state) {
  std::uint64_t scratch = 0;
  std::uint32_t result = 0;
  CUpti_CallbackData data{};
  data.correlationData = &scratch;
  data.functionReturnValue = &result;
  measure_each(state, [&] {
    data.callbackSite = CUPTI_API_ENTER;
    on_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, &data);
    data.callbackSite = CUPTI_API_EXIT;
    on_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, &data);
  });
}
BENCHMARK(api_callback);

void range_push_and_pop(benchmark::State& state) {
  measure_each(state, [] {
    log_push(0, "forward of layer 12", RangeSource::kNvtx, 0, 0);
    log_pop(0);
  });
}
BENCHMARK(range_push_and_pop);

void step(benchmark::State& state) {
  measure_each(state, [] { log_mark(kNoIndex, MarkSource::kStep); });
}
BENCHMARK(step);

void nothing(benchmark::State& state) {
  measure_each(state, [] { benchmark::ClobberMemory(); });
}
BENCHMARK(nothing);

/// As long as the others and free of our code: what of their tails is the machine's (timer interrupts,
/// a hypervisor that takes the processor away).
void arithmetic_of_the_same_length(benchmark::State& state) {
  std::uint64_t value = 1;
  measure_each(state, [&] {
    for (int i = 0; i < 25; ++i) {
      value = value * 6364136223846793005u + 1442695040888963407u;
      benchmark::DoNotOptimize(value);
    }
  });
}
BENCHMARK(arithmetic_of_the_same_length);

void range_without_a_session(benchmark::State& state) {
  for (auto _ : state) {
    gpudiag_range_push("forward", GPUDIAG_CAUSE_NONE);
    gpudiag_range_pop();
  }
}
BENCHMARK(range_without_a_session);

void step_without_a_session(benchmark::State& state) {
  for (auto _ : state) gpudiag_step();
}
BENCHMARK(step_without_a_session);

class Counting final : public RecordSink {
 public:
  void add(const Record& record) override {
    benchmark::DoNotOptimize(record);
    ++count;
  }
  std::uint64_t count = 0;
};

/// Records of one kind lie behind each other; good enough for what the decoder asks.
template <typename Struct>
CUptiResult CUPTIAPI next_record(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* at = *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + sizeof(Struct);
  if (at + sizeof(Struct) > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}

/// Decoding alone; filing and charging are the engine's.
void decode_kernel_record(benchmark::State& state) {
  CuptiTable cupti;
  cupti.next_record = next_record<CUpti_ActivityKernel10>;
  NameTable names;
  ActivityDecoder decoder{cupti, names};
  ClockMap clock;
  for (std::int64_t i = 0; i < 64; ++i) clock.add({i * 200'000'000 + 500, {i * 200'000'000}, {i * 200'000'000 + 40}});
  std::vector<CUpti_ActivityKernel10> kernels(300);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    kernels[i] = {};
    kernels[i].kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernels[i].name = i % 2 == 0 ? "_Z6squarePfi" : "ampere_sgemm_128x64_tn";
    kernels[i].start = 12'400'000'000 + i * 1000;
    kernels[i].end = kernels[i].start + 900;
  }
  Counting sink;
  const BufferPool::Filled buffer{reinterpret_cast<std::uint8_t*>(kernels.data()),
                                  kernels.size() * sizeof kernels[0]};
  for (auto _ : state) decoder.decode(buffer, clock, sink);
  state.SetItemsProcessed(static_cast<std::int64_t>(sink.count));
}
BENCHMARK(decode_kernel_record);

}  // namespace
}  // namespace gpudiag

BENCHMARK_MAIN();
