// SPDX-License-Identifier: Apache-2.0
// Prints a Markdown table of each trace: the shares of device wall time in per cent over all
// iterations, as the engine has them, at half and twice its constants, and without operator ranges.
// docs/real-traces.md is made with it.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "attribution/engine.hpp"
#include "sources/kineto_file/kineto_trace.hpp"

namespace {

using namespace gpudiag;

struct Variant {
  const char* name;
  EngineOptions options;
  bool operator_ranges = true;
};

std::vector<Variant> variants() {
  std::vector<Variant> all(6);
  all[0].name = "as it is";
  all[1].name = "dispatch limit 125 µs";
  all[1].options.dispatch_limit = microseconds(125);
  all[2].name = "dispatch limit 500 µs";
  all[2].options.dispatch_limit = microseconds(500);
  all[3].name = "launch latency 10 µs";
  all[3].options.launch_latency = microseconds(10);
  all[4].name = "launch latency 40 µs";
  all[4].options.launch_latency = microseconds(40);
  all[5].name = "no operator ranges";
  all[5].operator_ranges = false;
  return all;
}

/// Passes on what a trace says but for the ranges of a framework's operators.
class WithoutOperators final : public RecordSink {
 public:
  explicit WithoutOperators(RecordSink& to) : to_(to) {}
  void add(const Record& record) override {
    if (record.kind != RecordKind::kRange || record.range != RangeSource::kOperator) to_.add(record);
  }

 private:
  RecordSink& to_;
};

struct Sums {
  DurationNs wall, compute, communication, copy;
  CauseTimes idle{};
};

Sums analyse(const RecordedTrace& trace, const Variant& variant) {
  Sums sums;
  for (const RecordedProcess& process : trace.processes()) {
    if (process.operations == 0) continue;
    Engine engine{variant.options, trace.names(), [&](const IterationLedger& ledger) {
                    sums.wall += ledger.wall;
                    sums.compute += ledger.compute;
                    sums.communication += ledger.communication;
                    sums.copy += ledger.copy;
                    for (std::size_t c = 0; c < kCauseCount; ++c)
                      sums.idle[c] += ledger.idle_by_cause[c];
                  }};
    WithoutOperators filter{engine};
    trace.deliver(process.id,
                  variant.operator_ranges ? static_cast<RecordSink&>(engine) : filter);
    engine.finish();
  }
  return sums;
}

std::string share(DurationNs part, DurationNs wall) {
  if (part == DurationNs{} || wall <= DurationNs{}) return "–";
  return fmt::format("{:.2f}", 100.0 * static_cast<double>(part.ns) / static_cast<double>(wall.ns));
}

bool print_table(const char* path) {
  const auto trace = read_kineto(path);
  if (!trace) {
    fmt::print(stderr, "{}\n", trace.error().message);
    return false;
  }
  fmt::print("\n**{}**\n\n| | compute | communication | copy |",
             std::filesystem::path(path).filename().string());
  for (const auto cause : kCauseNames) fmt::print(" {} |", cause);
  fmt::print("\n|---|---:|---:|---:|");
  for (std::size_t c = 0; c < kCauseCount; ++c) fmt::print("---:|");
  fmt::print("\n");
  for (const Variant& variant : variants()) {
    const Sums sums = analyse(*trace, variant);
    fmt::print("| {} | {} | {} | {} |", variant.name, share(sums.compute, sums.wall),
               share(sums.communication, sums.wall), share(sums.copy, sums.wall));
    for (const DurationNs part : sums.idle) fmt::print(" {} |", share(part, sums.wall));
    fmt::print("\n");
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: golden_shares TRACE…\n");
    return 2;
  }
  bool all_read = true;
  for (int i = 1; i < count; ++i) all_read = print_table(arguments[i]) && all_read;
  return all_read ? 0 : 1;
}
