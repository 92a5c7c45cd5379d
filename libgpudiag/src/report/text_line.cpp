// SPDX-License-Identifier: Apache-2.0
#include "report/text_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "report/shares.hpp"

namespace gpudiag {
namespace {

using Out = std::back_insert_iterator<std::string>;

void append_head(Out out, const LineHead& head, const IterationRange& range) {
  fmt::format_to(out, "gpudiag rank {}", head.rank);
  if (head.show_device) fmt::format_to(out, " dev {}", raw(head.device));
  const std::string_view what = range.window ? "window" : "iter";
  if (range.evaluation) {
    fmt::format_to(out, " evaluation before iter {}", range.last);
  } else if (range.count <= 1) {
    fmt::format_to(out, " {} {}", what, range.first);
  } else {
    fmt::format_to(out, " {} {}-{}", what, range.first, range.last);
  }
}

// The mean, since the sum of a range says nothing to somebody who looks for the time of a step.
void append_time(Out out, const IterationRange& range) {
  const auto iterations = static_cast<std::int64_t>(range.sum.iterations);
  fmt::format_to(out, "  {}", format_time({(range.sum.wall.ns + iterations / 2) / iterations}));
  if (range.count > 1) fmt::format_to(out, " ×{}", iterations);
}

struct CauseShare {
  Cause cause;
  std::int64_t tenths;
};

// Falling; `unknown` closes the list, since what is not known comes after what is.
std::vector<CauseShare> shown_causes(const LedgerSum& sum, const Shares& shares) {
  std::vector<CauseShare> shown;
  for (std::size_t i = 0; i < kCauseCount; ++i) {
    const auto cause = static_cast<Cause>(i);
    if (cause != Cause::kUnknown && shares.idle_by_cause[i] > 0)
      shown.push_back({cause, shares.idle_by_cause[i]});
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const CauseShare& a, const CauseShare& b) { return a.tenths > b.tenths; });
  if (sum.idle_of(Cause::kUnknown).ns != 0)
    shown.push_back({Cause::kUnknown, shares.idle_by_cause[static_cast<std::size_t>(Cause::kUnknown)]});
  return shown;
}

void append_shares(Out out, const LedgerSum& sum) {
  const Shares shares = shares_of(sum);
  fmt::format_to(out, " | compute {}% comm {}% copy {}% | idle {}%", format_tenths(shares.compute),
                 format_tenths(shares.communication), format_tenths(shares.copy),
                 format_tenths(shares.idle));
  bool first = true;
  for (const CauseShare& share : shown_causes(sum, shares)) {
    fmt::format_to(out, "{} {} {}", first ? ":" : "", short_name(share.cause),
                   format_tenths(share.tenths));
    const SubCause sub_cause = sum.sub_causes.dominant(share.cause);
    if (first && sub_cause != SubCause::kNone) fmt::format_to(out, " ({})", name_of(sub_cause));
    first = false;
  }
}

void append_counted(Out out, const IterationRange& range, std::uint64_t count,
                    std::string_view what) {
  if (count == 0) return;
  if (range.count <= 1) {
    fmt::format_to(out, " | {}", what);
  } else {
    fmt::format_to(out, " | {} {}", count, what);
  }
}

void append_reservations(Out out, const IterationRange& range) {
  append_counted(out, range, range.partial, "partial");
  append_counted(out, range, range.empty, "empty");
  append_counted(out, range, range.invalid, "invalid");
  std::string_view separator = ": ";
  for (std::size_t i = 0; i < range.reasons.size(); ++i) {
    if (range.reasons[i] == 0) continue;
    fmt::format_to(out, "{}{} {}", separator, kInvalidReasonNames[i], range.reasons[i]);
    separator = ", ";
  }
}

}  // namespace

void IterationRange::add(const IterationLedger& ledger) {
  first = count == 0 ? ledger.index : std::min(first, ledger.index);
  last = count == 0 ? ledger.index : std::max(last, ledger.index);
  ++count;
  evaluation = ledger.phase == Phase::kEvaluation;
  window = ledger.phase == Phase::kWindow;
  partial += ledger.partial ? 1 : 0;
  empty += ledger.empty ? 1 : 0;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    // One loss may lie in several iterations: within a range it is told of once.
    const std::uint64_t told = reasons[i] == 0 ? 0 : ledger.counted_before[i];
    reasons[i] += ledger.invalid[i] - std::min(told, ledger.invalid[i]);
  }
  if (ledger.valid()) {
    sum.add(ledger);
  } else {
    ++invalid;
  }
}

std::string format_line(const LineHead& head, const IterationRange& range) {
  std::string line;
  const Out out = std::back_inserter(line);
  append_head(out, head, range);
  if (range.sum.iterations > 0) append_time(out, range);
  if (range.sum.wall.ns > 0) append_shares(out, range.sum);
  append_reservations(out, range);
  return line;
}

std::string format_line(const LineHead& head, const IterationLedger& ledger) {
  IterationRange range;
  range.add(ledger);
  return format_line(head, range);
}

std::string format_time(DurationNs time) {
  const double ns = static_cast<double>(time.ns);
  if (time.ns != 0 && std::abs(time.ns) < 1'000'000) return fmt::format("{:.1f} us", ns / 1e3);
  if (std::abs(time.ns) < 10'000'000'000) return fmt::format("{:.1f} ms", ns / 1e6);
  return fmt::format("{:.1f} s", ns / 1e9);
}

std::string format_tenths(std::int64_t tenths) {
  return fmt::format("{}.{}", tenths / 10, tenths % 10);
}

std::string_view short_name(Cause cause) {
  switch (cause) {
    case Cause::kLaunchOverhead: return "launch";
    case Cause::kCommunicationWait: return "comm_wait";
    default: return name_of(cause);
  }
}

}  // namespace gpudiag
