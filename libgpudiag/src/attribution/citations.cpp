// SPDX-License-Identifier: Apache-2.0
#include "attribution/citations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "attribution/evidence_table.hpp"

namespace gpudiag {
namespace {

constexpr std::size_t kEvidenceCited = 3;

// Our own time has a place in the ledger (own_ns), and tells nobody what to mend in the job.
bool is_own(const Evidence& seen) { return seen.what == kOwnCodeText; }

// What has no name of its own is said in words.
std::string what_of(const Evidence& seen) {
  if (seen.sub_cause == SubCause::kAllocatorRetry) return seen.what + " that failed";
  if (seen.what == name_of(Cause::kHost)) return "code that calls no CUDA function and stands in no range";
  if (seen.what == name_of(SubCause::kDispatchGap)) return "dispatch between two CUDA calls";
  return seen.what;
}

std::string say_bytes(std::uint64_t bytes) {
  if (bytes == 0) return {};
  if (bytes < 1'000'000) return fmt::format("{:.3f} kB, ", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.3f} MB, ", static_cast<double>(bytes) / 1e6);
}

std::string say(const EvidenceSum& seen, std::uint64_t of_iterations) {
  const Evidence& total = seen.total;
  // Without a count it began in an iteration that is not summed, and its cost fell into this one.
  const std::string often = total.count == 0 ? "began before" : counted(total.count, "time");
  std::string rhythm;
  if (const auto every = rarity(seen))
    rhythm = seen.most_apart - seen.least_apart <= 1
                 ? fmt::format(", every {:.0f} iterations", *every)
                 : fmt::format(", every {} to {} iterations", seen.least_apart, seen.most_apart);
  std::string text = fmt::format("{} on thread {}: {} in {} of {}{}, {}{:.3f} ms of host time",
                                 what_of(total), raw(total.thread), often, seen.iterations,
                                 counted(of_iterations, "iteration"), rhythm, say_bytes(total.bytes), ms(total.host));
  if (total.charged.ns > 0) text += fmt::format(", {:.3f} ms of idle charged", ms(total.charged));
  if (total.longest_at == kTimeMin) return text;
  return text + fmt::format("; most in iteration {}, at {:+.6f} s", seen.example,
                            static_cast<double>(total.longest_at.ns) / 1e9);
}

// A wait that takes the host's lead shows in the gaps of whatever the host does next.
void cite_where_it_shows(const Basis& basis, Cause cause, std::vector<std::string>& to) {
  const LedgerSum& sum = basis.sum;
  if (sum.idle_of(cause).ns * 2 >= basis.cost_of(finding_cause(cause)).ns) return;
  const auto most = std::max_element(sum.idle_by_cause.begin(), sum.idle_by_cause.end());
  const auto other = static_cast<Cause>(most - sum.idle_by_cause.begin());
  if (other == cause || most->ns == 0) return;
  to.push_back(fmt::format("it takes the host's lead, so that the GPU waits for what the host does next: "
                           "that idle time stands under {}, {:.1f} % of wall",
                           name_of(other), 100 * ratio(*most, sum.wall)));
}

void cite_launches(const LedgerSum& sum, std::vector<std::string>& to) {
  if (sum.launches == 0) return;
  const auto us = [](DurationNs time) { return static_cast<double>(time.ns) / 1e3; };
  to.push_back(fmt::format("{} launches an iteration, one each {:.1f} us; an operation runs for {:.1f} us "
                           "and the GPU is idle for {:.1f} us before it, on average",
                           sum.launches / sum.iterations, us(mean(sum.wall, sum.launches)),
                           us(mean(sum.compute, sum.operations)), us(mean(sum.idle, sum.operations))));
}

// Launches can be made fewer and cheaper, not free, so what the replay saves without any is more than
// anybody will. What they would still cost with the other causes gone is what the ledger leaves to them.
void cite_bound(const Basis& basis, std::vector<std::string>& to) {
  to.push_back(fmt::format("upper bound: as if launching took no time at all, where it can only be made less; "
                           "{:.1f} % of wall is left to it with the other causes gone, and by that it is ranked",
                           100 * ratio(basis.sum.idle_of(Cause::kLaunchOverhead), basis.sum.wall)));
}

void cite_cause(const Basis& basis, Cause cause, std::vector<std::string>& to) {
  if (cause == Cause::kLaunchOverhead) cite_bound(basis, to);
  const DurationNs charged = basis.sum.idle_of(cause);
  to.push_back(fmt::format("the ledger charges {:.1f} % of wall to it, {:.3f} ms an iteration",
                           100 * ratio(charged, basis.sum.wall),
                           ms(charged) / static_cast<double>(basis.iterations)));
  // Of an upper bound that would be said of time which is not its.
  if (cause != Cause::kLaunchOverhead) cite_where_it_shows(basis, cause, to);
  std::size_t cited = 0;
  for (const EvidenceSum& seen : basis.evidence.of(cause)) {
    if (is_own(seen.total)) continue;
    if (++cited > kEvidenceCited) break;
    to.push_back(say(seen, basis.iterations));
  }
  if (cause == Cause::kLaunchOverhead) cite_launches(basis.sum, to);
}

// Copies that held their caller up.
void cite_blocking_copies(const Basis& basis, std::vector<std::string>& to) {
  EvidenceSum blocking;
  for (const EvidenceSum& seen : basis.evidence.of(Cause::kSync)) {
    if (seen.total.sub_cause != SubCause::kBlockingCopy) continue;
    blocking.total.count += seen.total.count;
    blocking.total.host += seen.total.host;
  }
  if (blocking.total.count > 0)
    to.push_back(fmt::format("{} blocked the caller (pageable memory, or a synchronous copy) for "
                             "{:.3f} ms in {}",
                             counted(blocking.total.count, "copy call"), ms(blocking.total.host),
                             counted(basis.iterations, "iteration")));
}

void cite_exposed(const Basis& basis, DurationNs exposed, DurationNs total, std::string_view what,
                  std::vector<std::string>& to) {
  to.push_back(fmt::format("{:.1f} % of wall is exposed {}; {:.1f} % of its {:.3f} ms an iteration "
                           "run beside compute",
                           100 * ratio(exposed, basis.sum.wall), what,
                           100 * ratio(total - exposed, total),
                           ms(total) / static_cast<double>(basis.iterations)));
}

void cite_together(const Basis& basis, std::vector<std::string>& to) {
  to.push_back(fmt::format("upper bound: without all host causes at once, launches included, {:.1f} % of wall "
                           "would be saved, without each alone only:",
                           100 * ratio(basis.cost_of(FindingCause::kHostTogether), basis.sum.wall)));
  for (std::size_t i = 0; i < kCauseCount; ++i) {
    const auto cause = static_cast<Cause>(i);
    if (!is_host_cause(cause) || basis.sum.idle_of(cause).ns == 0) continue;
    to.push_back(fmt::format("{}: {:.1f} % saved, {:.1f} % charged", name_of(cause),
                             100 * ratio(basis.cost_of(finding_cause(cause)), basis.sum.wall),
                             100 * ratio(basis.sum.idle_of(cause), basis.sum.wall)));
  }
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::vector<std::string> cite(const Basis& basis, FindingCause cause) {
  std::vector<std::string> cited;
  const LedgerSum& sum = basis.sum;
  switch (cause) {
    case FindingCause::kCommunication:
      cite_exposed(basis, sum.communication, sum.communication_total, "communication", cited);
      break;
    case FindingCause::kCopy:
      cite_exposed(basis, sum.copy, sum.copy_total, "copies", cited);
      cite_blocking_copies(basis, cited);
      break;
    case FindingCause::kHostTogether: cite_together(basis, cited); break;
    default: cite_cause(basis, static_cast<Cause>(cause), cited);
  }
  return cited;
}

}  // namespace gpudiag
