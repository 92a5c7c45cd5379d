// SPDX-License-Identifier: Apache-2.0
// How fast traces are analysed, stage by stage, and how that compares with the floor, which is
// inflating the file and doing nothing with it:
//
//   analyze_bench TRACE.json.gz …
//
// Best of several runs, for other programs only ever make one slower. The peak of memory is that of
// the process after its first whole analysis, so one file a call gives the truest figure.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include "attribution/engine.hpp"
#include "sources/kineto_file/byte_input.hpp"
#include "sources/kineto_file/kineto_trace.hpp"

namespace {

using namespace gpudiag;
using Clock = std::chrono::steady_clock;

constexpr int kRuns = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;  // Linux counts KiB
}

double inflate(const char* path) {
  const auto start = Clock::now();
  auto input = kineto_file::open_input(path);
  if (!input) return 0;
  std::vector<char> buffer(256u << 10);
  while ((*input)->read(buffer) == buffer.size()) {
  }
  return seconds_since(start);
}

/// Of all threads, user and system: on a busy machine this says more than the time on the wall.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Times {
  double read = std::numeric_limits<double>::max();
  double charge = std::numeric_limits<double>::max();
  double total = std::numeric_limits<double>::max();
  double cpu = std::numeric_limits<double>::max();
};

bool bench(const char* path) {
  Times best;
  double floor = std::numeric_limits<double>::max();
  double first_peak = 0;
  RecordedInfo info;
  std::uint64_t records = 0;
  for (int run = 0; run < kRuns; ++run) {
    const double cpu = cpu_seconds();
    const auto start = Clock::now();
    auto trace = read_kineto(path);
    if (!trace) {
      std::fprintf(stderr, "%s\n", trace.error().message.c_str());
      return false;
    }
    const double read = seconds_since(start);
    Engine engine{{}, trace->names(), [](const IterationLedger&) {}};
    trace->deliver(trace->processes().front().id, engine);
    engine.finish();
    const double total = seconds_since(start);
    if (run == 0) first_peak = peak_mib();
    best.read = std::min(best.read, read);
    best.charge = std::min(best.charge, total - read);
    best.total = std::min(best.total, total);
    best.cpu = std::min(best.cpu, cpu_seconds() - cpu);
    records = engine.quality().records;
    info = trace->info();
    floor = std::min(floor, inflate(path));
  }
  const double gigabytes = static_cast<double>(info.json_bytes) / 1e9;
  fmt::print("{}\n", path);
  fmt::print("  {:.1f} MB of JSON ({:.1f} MB in the file), {} events, {} records\n",
             gigabytes * 1e3, static_cast<double>(info.file_bytes) / 1e6, info.events, records);
  fmt::print("  inflate only {:.3f} s, {:.2f} GB/s\n", floor, gigabytes / floor);
  fmt::print("  read {:.3f} s, {:.2f} GB/s; charge {:.3f} s, {:.0f} ns a record\n", best.read,
             gigabytes / best.read, best.charge,
             best.charge * 1e9 / static_cast<double>(std::max<std::uint64_t>(records, 1)));
  fmt::print("  analyze {:.3f} s, {:.2f} GB/s, {:.2f} times the floor, {:.0f} ns an event\n",
             best.total, gigabytes / best.total, best.total / floor,
             best.total * 1e9 / static_cast<double>(std::max<std::uint64_t>(info.events, 1)));
  fmt::print("  processor time of all threads {:.3f} s, {:.2f} GB/s and core\n", best.cpu,
             gigabytes / best.cpu);
  fmt::print("  peak {:.0f} MiB, {:.2f} times the JSON\n", first_peak,
             first_peak * 1.048576e6 / (gigabytes * 1e9));
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fputs("usage: analyze_bench TRACE.json[.gz] …\n", stderr);
    return 2;
  }
  bool good = true;
  for (int i = 1; i < count; ++i) good = bench(arguments[i]) && good;
  return good ? 0 : 1;
}
