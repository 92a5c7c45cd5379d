// SPDX-License-Identifier: Apache-2.0
#include "attribution/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "attribution/advice.hpp"

namespace gpudiag {
namespace {

// Below it a finding drowns in run-to-run noise and nobody would act on it.
constexpr double kLeastShare = 0.02;
// Ten iterations make the mean of a cost that comes and goes mean something.
constexpr std::uint64_t kManyIterations = 10;
constexpr std::size_t kEvidenceCited = 3;
constexpr double kUnknownDominates = 0.05;
// A launch through a framework takes the host about as long (5 to 10 us on the real traces of the
// golden tests): kernels shorter than that cannot keep a GPU busy however fast they are dispatched.
constexpr DurationNs kShortKernel = microseconds(10);

double ratio(DurationNs part, DurationNs whole) {
  return whole.ns > 0 ? static_cast<double>(part.ns) / static_cast<double>(whole.ns) : 0.0;
}

double ms(DurationNs time) { return static_cast<double>(time.ns) / 1e6; }

DurationNs cost_of(const LedgerSum& sum, FindingCause cause) {
  switch (cause) {
    case FindingCause::kCommunication: return sum.replay_cost_communication;
    case FindingCause::kCopy: return sum.replay_cost_copy;
    case FindingCause::kHostTogether: return sum.replay_cost_all_host;
    default: return sum.cost_of(static_cast<Cause>(cause));
  }
}

bool is_host_cause(Cause cause) {
  return cause != Cause::kCommunicationWait && cause != Cause::kDependency && cause != Cause::kUnknown;
}

struct HostCosts {
  DurationNs sum;
  DurationNs largest;
};

HostCosts host_costs(const LedgerSum& sum) {
  HostCosts costs;
  for (std::size_t i = 0; i < kCauseCount; ++i) {
    if (!is_host_cause(static_cast<Cause>(i))) continue;
    costs.sum += sum.replay_cost[i];
    costs.largest = std::max(costs.largest, sum.replay_cost[i]);
  }
  return costs;
}

// Removing all gains more than the gains of removing each add up to, and at least twice what the best
// of them gains: the causes hide each other, and no one of them is the place to begin.
bool host_causes_hide_each_other(const LedgerSum& sum) {
  const DurationNs together = sum.replay_cost_all_host;
  const HostCosts alone = host_costs(sum);
  return ratio(together - alone.sum, sum.wall) >= kLeastShare && together.ns * 4 >= alone.sum.ns * 5 &&
         together.ns >= alone.largest.ns * 2;
}

// A probe costs the job's thread time that looks like its own dispatch.
bool own_cost_explains(const LedgerSum& sum, FindingCause cause) {
  return cause == FindingCause::kLaunchOverhead && sum.own.ns > 0 &&
         sum.own.ns * 2 >= cost_of(sum, cause).ns;
}

// One or several ranks as one.
struct Basis {
  LedgerSum sum;
  EvidenceSums evidence;
  std::uint64_t iterations = 0;
  std::optional<std::uint32_t> rank;
  bool steady = true;
  Grade worst = Grade::kGood;

  void add(const RankBasis& of) {
    sum.add(of.sum);
    evidence.add(of.evidence);
    iterations += of.iterations;
    if (of.iterations > 0) steady = steady && of.steady;
    worst = std::max(worst, of.quality.grade());
  }
};

Confidence confidence_of(const Basis& basis, DurationNs cost) {
  if (!basis.steady) return Confidence::kLow;
  const bool well_known = basis.sum.idle_of(Cause::kUnknown) < cost;
  const bool many = basis.iterations >= kManyIterations;
  return well_known && many && basis.worst == Grade::kGood ? Confidence::kHigh : Confidence::kMedium;
}

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// What has no name of its own is said in words.
std::string what_of(const Evidence& seen) {
  if (seen.sub_cause == SubCause::kAllocatorRetry) return seen.what + " that failed";
  if (seen.what == name_of(Cause::kHost)) return "code that calls no CUDA function and stands in no range";
  if (seen.what == name_of(SubCause::kDispatchGap)) return "dispatch between two CUDA calls";
  return seen.what;
}

std::string say(const EvidenceSum& seen, std::uint64_t of_iterations) {
  const Evidence& total = seen.total;
  // Without a count it began in an iteration that is not summed, and its cost fell into this one.
  const std::string often = total.count == 0 ? "began before" : counted(total.count, "time");
  std::string text = fmt::format("{} on thread {}: {} in {} of {}, {:.3f} ms of host time",
                                 what_of(total), raw(total.thread), often, seen.iterations,
                                 counted(of_iterations, "iteration"), ms(total.host));
  if (total.charged.ns > 0) text += fmt::format(", {:.3f} ms of idle charged", ms(total.charged));
  return text + fmt::format("; most in iteration {}, at {:+.6f} s", seen.example,
                            static_cast<double>(total.longest_at.ns) / 1e9);
}

// A wait that takes the host's lead shows in the gaps of whatever the host does next.
void cite_where_it_shows(const Basis& basis, Cause cause, std::vector<std::string>& to) {
  const LedgerSum& sum = basis.sum;
  if (sum.idle_of(cause).ns * 2 >= sum.cost_of(cause).ns) return;
  const auto most = std::max_element(sum.idle_by_cause.begin(), sum.idle_by_cause.end());
  const auto other = static_cast<Cause>(most - sum.idle_by_cause.begin());
  if (other == cause || most->ns == 0) return;
  to.push_back(fmt::format("it takes the host's lead, so that the GPU waits for what the host does next: "
                           "that idle time stands under {}, {:.1f} % of wall",
                           name_of(other), 100 * ratio(*most, sum.wall)));
}

DurationNs mean(DurationNs sum, std::uint64_t count) {
  return {count == 0 ? 0 : sum.ns / static_cast<std::int64_t>(count)};
}

void cite_launches(const LedgerSum& sum, std::vector<std::string>& to) {
  if (sum.launches == 0) return;
  const auto us = [](DurationNs time) { return static_cast<double>(time.ns) / 1e3; };
  to.push_back(fmt::format("{} launches an iteration, one each {:.1f} us; an operation runs for {:.1f} us "
                           "and the GPU is idle for {:.1f} us before it, on average",
                           sum.launches / sum.iterations, us(mean(sum.wall, sum.launches)),
                           us(mean(sum.compute, sum.operations)), us(mean(sum.idle, sum.operations))));
}

void cite_cause(const Basis& basis, Cause cause, std::vector<std::string>& to) {
  const DurationNs charged = basis.sum.idle_of(cause);
  to.push_back(fmt::format("the ledger charges {:.1f} % of wall to it, {:.3f} ms an iteration",
                           100 * ratio(charged, basis.sum.wall),
                           ms(charged) / static_cast<double>(basis.iterations)));
  cite_where_it_shows(basis, cause, to);
  const auto seen = basis.evidence.of(cause);
  for (std::size_t i = 0; i < std::min(seen.size(), kEvidenceCited); ++i)
    to.push_back(say(seen[i], basis.iterations));
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
  to.push_back(fmt::format("without all host causes at once {:.1f} % of wall would be saved, without "
                           "each alone only:",
                           100 * ratio(basis.sum.replay_cost_all_host, basis.sum.wall)));
  for (std::size_t i = 0; i < kCauseCount; ++i) {
    const auto cause = static_cast<Cause>(i);
    if (!is_host_cause(cause) || basis.sum.idle_of(cause).ns == 0) continue;
    to.push_back(fmt::format("{}: {:.1f} % saved, {:.1f} % charged", name_of(cause),
                             100 * ratio(basis.sum.cost_of(cause), basis.sum.wall),
                             100 * ratio(basis.sum.idle_of(cause), basis.sum.wall)));
  }
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

SubCause sub_cause_of(const Basis& basis, Cause cause) {
  if (cause == Cause::kLaunchOverhead && basis.sum.operations > 0 &&
      mean(basis.sum.compute, basis.sum.operations) < kShortKernel &&
      basis.sum.launches * 2 > basis.sum.operations)
    return SubCause::kManySmallKernels;
  // What follows a failed allocation, the release of all caches first of all, is its consequence.
  if (cause == Cause::kAllocation)
    for (const EvidenceSum& seen : basis.evidence.of(cause))
      if (seen.total.sub_cause == SubCause::kAllocatorRetry) return SubCause::kAllocatorRetry;
  return basis.sum.sub_causes.dominant(cause);
}

Finding make_finding(const Basis& basis, FindingCause cause) {
  const DurationNs cost = std::min(cost_of(basis.sum, cause), basis.sum.wall);
  Finding finding;
  finding.cause = cause;
  finding.rank = basis.rank;
  if (static_cast<std::size_t>(cause) < kCauseCount)
    finding.sub_cause = sub_cause_of(basis, static_cast<Cause>(cause));
  finding.share = ratio(cost, basis.sum.wall);
  finding.cost_per_iteration = {cost.ns / static_cast<std::int64_t>(basis.iterations)};
  // Without bound where the cause is all there is; a thousandfold says as much.
  finding.speedup_if_fixed = 1 / std::max(1 - finding.share, 0.001);
  finding.evidence = cite(basis, cause);
  finding.advice = advice_for(cause, finding.sub_cause);
  finding.confidence = confidence_of(basis, cost);
  return finding;
}

bool is_finding(const Basis& basis, FindingCause cause) {
  if (cause == FindingCause::kUnknown || basis.iterations == 0) return false;
  if (cause == FindingCause::kHostTogether && !host_causes_hide_each_other(basis.sum)) return false;
  return ratio(cost_of(basis.sum, cause), basis.sum.wall) >= kLeastShare &&
         !own_cost_explains(basis.sum, cause);
}

constexpr auto kLastCause = FindingCause::kHostTogether;

std::vector<Finding> find_all(const Basis& job, std::span<const RankBasis> ranks) {
  std::vector<Finding> findings;
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(kLastCause); ++i) {
    const auto cause = static_cast<FindingCause>(i);
    if (is_finding(job, cause)) {
      findings.push_back(make_finding(job, cause));
      continue;
    }
    if (ranks.size() < 2) continue;
    for (const RankBasis& rank : ranks) {
      Basis alone;
      alone.add(rank);
      alone.rank = rank.rank;
      if (is_finding(alone, cause)) findings.push_back(make_finding(alone, cause));
    }
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.share > b.share;
  });
  return findings;
}

Diagnosis refuse(VerdictOnly verdict, std::string reason) {
  return {{}, std::string{kVerdictOnlyNames[static_cast<std::size_t>(verdict)]}, std::move(reason)};
}

Diagnosis no_activity(std::span<const RankBasis> ranks) {
  std::uint64_t launches = 0;
  for (const RankBasis& rank : ranks)
    launches += std::max(rank.launches, rank.quality[Defect::kNoOperation]);
  if (launches > 0)
    return refuse(VerdictOnly::kNoGpuActivity,
                  fmt::format("{} launches were seen, but the tracer delivered no GPU operation. Under "
                              "WSL and without permission to trace it delivers none; this is not an "
                              "idle GPU",
                              launches));
  return refuse(VerdictOnly::kNoGpuActivity, "neither launches nor GPU operations were recorded");
}

std::string say_defects(const Quality& quality) {
  std::string text;
  for (std::size_t i = 0; i < quality.defects.size(); ++i)
    if (quality.defects[i] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kDefectNames[i], quality.defects[i]);
  return text;
}

std::string say_reasons(std::span<const RankBasis> ranks) {
  std::string text;
  for (std::size_t i = 0; i < kInvalidReasonNames.size(); ++i) {
    std::uint64_t count = 0;
    for (const RankBasis& rank : ranks) count += rank.invalid_reasons[i];
    if (count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kInvalidReasonNames[i], count);
  }
  return text;
}

std::optional<Diagnosis> refuse_for_quality(std::span<const RankBasis> ranks, const Basis& job) {
  for (const RankBasis& rank : ranks) {
    if (rank.quality.grade() != Grade::kPoor) continue;
    return refuse(VerdictOnly::kPoorQuality,
                  fmt::format("over 1 % of rank {}'s {} records are defective ({})", rank.rank,
                              rank.quality.records, say_defects(rank.quality)));
  }
  if (job.sum.wall.ns == 0)
    return refuse(VerdictOnly::kPoorQuality,
                  fmt::format("no iteration is valid ({})", say_reasons(ranks)));
  return std::nullopt;
}

void set_verdict(Diagnosis& diagnosis, const Basis& job) {
  const double unknown = ratio(job.sum.idle_of(Cause::kUnknown), job.sum.wall);
  const double top = diagnosis.findings.empty() ? 0 : diagnosis.findings.front().share;
  const auto set = [&](VerdictOnly verdict, std::string reason) {
    diagnosis.verdict = kVerdictOnlyNames[static_cast<std::size_t>(verdict)];
    diagnosis.reason = std::move(reason);
  };
  if (unknown >= kUnknownDominates && unknown > top &&
      job.sum.idle_of(Cause::kUnknown).ns * 2 > job.sum.idle.ns) {
    set(VerdictOnly::kUnknown, fmt::format("{:.1f} % of wall is idle without evidence of why",
                                           100 * unknown));
    return;
  }
  const double launch = ratio(job.sum.cost_of(Cause::kLaunchOverhead), job.sum.wall);
  if (own_cost_explains(job.sum, FindingCause::kLaunchOverhead) && launch >= kLeastShare && launch > top) {
    set(VerdictOnly::kOwnOverhead,
        fmt::format("launches cost {:.1f} % of wall, but {:.1f} % of wall was spent in gpudiag's own "
                    "code, which may be why",
                    100 * launch, 100 * ratio(job.sum.own, job.sum.wall)));
    return;
  }
  if (diagnosis.findings.empty()) {
    set(VerdictOnly::kNone, "nothing that could be removed costs 2 % of wall time");
    return;
  }
  const Finding& first = diagnosis.findings.front();
  diagnosis.verdict = name_of(first.cause);
  diagnosis.reason = fmt::format("it costs {:.1f} % of wall time; without it an iteration would be "
                                 "{:.2f} times as fast",
                                 100 * first.share, first.speedup_if_fixed);
}

}  // namespace

Diagnosis diagnose(std::span<const RankBasis> ranks) {
  std::uint64_t operations = 0;
  Basis job;
  for (const RankBasis& rank : ranks) {
    operations += rank.operations;
    job.add(rank);
  }
  if (operations == 0) return no_activity(ranks);
  if (auto refusal = refuse_for_quality(ranks, job)) return *std::move(refusal);
  Diagnosis diagnosis;
  diagnosis.findings = find_all(job, ranks);
  set_verdict(diagnosis, job);
  return diagnosis;
}

}  // namespace gpudiag
