// SPDX-License-Identifier: Apache-2.0
#include "attribution/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "attribution/advice.hpp"
#include "attribution/asked_findings.hpp"
#include "attribution/basis.hpp"
#include "attribution/citations.hpp"
#include "attribution/host_timeline.hpp"
#include "attribution/verdict.hpp"

namespace gpudiag {
namespace {

// Ten iterations make the mean of a cost that comes and goes mean something.
constexpr std::uint64_t kManyIterations = 10;
// Twice the threshold: what lies below is nearer to nothing than a change of the machine's mood.
constexpr double kClearlyAbove = 2 * kLeastShare;
// A launch through a framework takes the host about as long (5 to 10 us on the real traces of the
// golden tests): kernels shorter than that cannot keep a GPU busy however fast they are dispatched.
constexpr DurationNs kShortKernel = microseconds(10);

DurationNs dearest_host_cause(const Basis& basis) {
  DurationNs most;
  for (std::size_t i = 0; i < kCauseCount; ++i)
    if (const auto cause = static_cast<Cause>(i); is_host_cause(cause))
      most = std::max(most, basis.cost_of(finding_cause(cause)));
  return most;
}

// Removing all gains at least half as much again as the gains of removing each add up to, by more of
// wall than iterations differ by, and twice what the best of them gains: the causes hide each other,
// and no one of them is the place to begin.
bool host_causes_hide_each_other(const Basis& basis) {
  const DurationNs together = basis.cost_of(FindingCause::kHostTogether);
  const DurationNs alone = saved_by_each_host_cause(basis.sum);
  const double more = ratio(together - alone, basis.sum.wall);
  // Of one or two iterations nobody knows by how much they differ.
  return basis.iterations >= 3 && more - basis.margin(kTogetherColumn, more) >= kClearlyAbove &&
         together.ns * 2 >= alone.ns * 3 && together.ns >= dearest_host_cause(basis).ns * 2;
}

Confidence confidence_of(const Basis& basis, const Finding& finding, DurationNs cost) {
  const double surely = finding.share - finding.share_margin;
  if (!basis.steady || surely < kLeastShare) return Confidence::kLow;
  const bool clear = surely >= kClearlyAbove && finding.share_margin < kLeastShare;
  const bool well_known = basis.sum.idle_of(Cause::kUnknown) < cost;
  const bool many = basis.iterations >= kManyIterations;
  return clear && well_known && many && basis.worst == Grade::kGood && !finding.upper_bound
             ? Confidence::kHigh
             : Confidence::kMedium;
}

// The loop took batches that were there when it asked: what it spends its time on is the taking.
bool batches_were_ready(const Basis& basis) {
  const EvidenceSum* most = nullptr;
  const std::vector<EvidenceSum> seen = basis.evidence.of(Cause::kDataLoading);
  for (const EvidenceSum& kind : seen)
    if (most == nullptr || kind.total.host > most->total.host) most = &kind;
  return most != nullptr && most->total.sub_cause == SubCause::kNone && most->total.count > 0 &&
         mean(most->total.host, most->total.count) <= kReadyBatch;
}

SubCause sub_cause_of(const Basis& basis, Cause cause) {
  if (cause == Cause::kDataLoading && batches_were_ready(basis)) return SubCause::kUnpickling;
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

Wording wording_of(const Basis& basis) { return basis.torch ? Wording::kTorch : Wording::kPlain; }

// Compiling that goes on after warm-up is known by what was called.
FindingCause kind_of_compiling(const std::vector<EvidenceSum>& seen) {
  for (const EvidenceSum& kind : seen) {
    if (kind.total.sub_cause != SubCause::kCompile) continue;
    const auto names = [&](std::string_view part) { return kind.total.what.find(part) != std::string::npos; };
    return names("GraphInstantiate") || names("Capture") || names("GraphExecUpdate") ? FindingCause::kGraphRecapture
                                                                                     : FindingCause::kRecompilation;
  }
  return FindingCause::kHost;
}

// What is known beyond the cause's own cost: its sub-causes', how often it comes, what kind of compiling.
void add_details(const Basis& basis, Cause cause, Finding& finding) {
  const std::vector<EvidenceSum> seen = basis.evidence.of(cause);
  if (!seen.empty()) finding.every = rarity(seen.front());
  if (finding.every && *finding.every > 0)
    finding.evidence.push_back(fmt::format("every {:.0f} iterations on average; shared out over all, {:.3f} ms each",
                                           *finding.every, ms(finding.cost_per_iteration)));
  finding.sub_costs = sub_costs_of(basis, cause);
  std::string text;
  for (const SubCost& cost : finding.sub_costs)
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "removed alone, of wall: " : ", ", name_of(cost.sub_cause),
                        100 * cost.share);
  if (!text.empty()) finding.evidence.push_back(std::move(text));
  if (basis.steady && finding.sub_cause == SubCause::kCompile) finding.cause = kind_of_compiling(seen);
}

Finding make_finding(const Basis& basis, FindingCause cause) {
  const DurationNs cost = basis.cost_of(cause);
  Finding finding;
  finding.cause = cause;
  finding.rank = basis.rank;
  if (static_cast<std::size_t>(cause) < kCauseCount)
    finding.sub_cause = sub_cause_of(basis, static_cast<Cause>(cause));
  finding.share = ratio(cost, basis.sum.wall);
  finding.share_margin = basis.margin(column_of(cause), finding.share);
  // Both take launches for free, which nobody can make them.
  finding.upper_bound = cause == FindingCause::kLaunchOverhead || cause == FindingCause::kHostTogether;
  finding.ranked_by = finding.share;
  if (cause == FindingCause::kLaunchOverhead)
    finding.ranked_by =
        std::min(finding.share, ratio(basis.sum.idle_of(Cause::kLaunchOverhead), basis.sum.wall));
  finding.cost_per_iteration = mean(cost, basis.iterations);
  // Without bound where the cause is all there is; a thousandfold says as much.
  finding.speedup_if_fixed = 1 / std::max(1 - finding.share, 0.001);
  finding.evidence = cite(basis, cause);
  if (static_cast<std::size_t>(cause) < kCauseCount) add_details(basis, static_cast<Cause>(cause), finding);
  finding.advice = advice_for(finding.cause, finding.sub_cause, wording_of(basis));
  finding.confidence = confidence_of(basis, finding, cost);
  return finding;
}

Finding make_pair_finding(const Basis& basis, const HiddenPair& pair) {
  Finding finding = make_finding(basis, pair.cause);
  finding.together_with = name_of(pair.other);
  finding.upper_bound = false;
  finding.share = finding.ranked_by = pair.share;
  finding.share_margin = basis.margin(kTogetherColumn, pair.share - pair.alone - pair.other_alone);
  finding.speedup_if_fixed = 1 / std::max(1 - pair.share, 0.001);
  const double wall = static_cast<double>(mean(basis.sum.wall, basis.iterations).ns);
  finding.cost_per_iteration = DurationNs{static_cast<std::int64_t>(pair.share * wall)};
  finding.evidence.insert(finding.evidence.begin(),
                          fmt::format("each hides the other: without {} alone {:.1f} % of wall would be saved, without "
                                      "{} alone {:.1f} %, without both {:.1f} %",
                                      name_of(pair.cause), 100 * pair.alone, name_of(pair.other),
                                      100 * pair.other_alone, 100 * pair.share));
  const Finding other = make_finding(basis, pair.other);
  finding.evidence.insert(finding.evidence.end(), other.evidence.begin(), other.evidence.end());
  finding.advice = fmt::format("Remove both, since one alone gains little. {} {}", finding.advice, other.advice);
  finding.confidence = confidence_of(basis, finding, finding.cost_per_iteration);
  return finding;
}

// Events that are named and come back are no noise, however far apart they are: a checkpoint twice in a
// thousand iterations is one, and its interval over batches of iterations still reaches below zero.
bool comes_back_by_name(const Basis& basis, FindingCause cause) {
  if (static_cast<std::size_t>(cause) >= kCauseCount) return false;
  constexpr auto kNamed = [](const Evidence& seen) {
    return seen.cause == Cause::kCheckpoint || seen.sub_cause == SubCause::kWorkerStart ||
           seen.sub_cause == SubCause::kGarbageCollection || seen.sub_cause == SubCause::kCompile ||
           seen.sub_cause == SubCause::kAllocatorRetry;
  };
  const std::vector<EvidenceSum> seen = basis.evidence.of(static_cast<Cause>(cause));
  return !seen.empty() && kNamed(seen.front().total) && seen.front().iterations >= 2;
}

bool is_finding(const Basis& basis, FindingCause cause) {
  if (cause == FindingCause::kUnknown || basis.iterations == 0) return false;
  if (cause == FindingCause::kHostTogether && !host_causes_hide_each_other(basis)) return false;
  const double share = ratio(basis.cost_of(cause), basis.sum.wall);
  if (share < kLeastShare || own_cost_explains(basis, cause)) return false;
  // What may just as well be nothing at all.
  return basis.margin(column_of(cause), share) < share || comes_back_by_name(basis, cause);
}

// Of what all host causes together would save.
constexpr double kMostOfIt = 0.8;

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
  if (const auto pair = find_hidden_pair(job)) {
    findings.push_back(make_pair_finding(job, *pair));
    // That two of them explain it says more than that all of them do.
    std::erase_if(findings, [&](const Finding& finding) {
      return finding.cause == FindingCause::kHostTogether && pair->share >= kMostOfIt * finding.share;
    });
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.ranked_by > b.ranked_by;
  });
  return findings;
}

}  // namespace

Diagnosis diagnose(std::span<const RankBasis> ranks) {
  Basis job;
  for (const RankBasis& rank : ranks) job.add(rank);
  if (auto refusal = refuse_findings(ranks, job)) return *std::move(refusal);
  Diagnosis diagnosis;
  diagnosis.findings = find_all(job, ranks);
  set_verdict(diagnosis, job);
  return diagnosis;
}

}  // namespace gpudiag
