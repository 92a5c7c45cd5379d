// SPDX-License-Identifier: Apache-2.0
#include "report/line_pacer.hpp"

#include <utility>

namespace gpudiag {
namespace {

constexpr DurationNs kBetweenLines = seconds(1);

}  // namespace

LinePacer::LinePacer(std::uint32_t rank, bool every, Print print)
    : rank_(rank), every_(every), print_(std::move(print)) {}

void LinePacer::add(const IterationLedger& ledger, TimePoint now) {
  auto& ranges = ledger.phase == Phase::kEvaluation ? evaluations_ : ledger.phase == Phase::kWindow ? windows_ : waiting_;
  IterationRange& range = ranges[ledger.device];
  range.add(ledger);
  if (every_) {
    print(ledger.device, range);
    range = IterationRange{};
    return;
  }
  poll(now);
}

void LinePacer::poll(TimePoint now) {
  // The first comparison alone would overflow before anything was printed.
  if (last_print_ != kTimeMin && now - last_print_ < kBetweenLines) return;
  bool printed = false;
  for (const auto* ranges : {&windows_, &waiting_, &evaluations_})
    for (const auto& [device, range] : *ranges) printed = printed || range.count > 0;
  if (!printed) return;
  flush();
  last_print_ = now;
}

void LinePacer::flush() {
  for (auto* ranges : {&windows_, &waiting_, &evaluations_}) {
    for (auto& [device, range] : *ranges) {
      if (range.count == 0) continue;
      print(device, range);
      range = IterationRange{};
    }
  }
}

void LinePacer::print(DeviceId device, const IterationRange& range) {
  const bool several = waiting_.size() > 1 || evaluations_.size() > 1 || windows_.size() > 1 || expected_devices_ > 1;
  print_(format_line({rank_, device, several}, range));
}

}  // namespace gpudiag
