// SPDX-License-Identifier: Apache-2.0
#include "attribution/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gpudiag {
namespace {

constexpr double kUnknownDominates = 0.05;

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
  if (std::any_of(ranks.begin(), ranks.end(), [](const RankBasis& rank) { return !rank.finished; }))
    return refuse(VerdictOnly::kNoGpuActivity,
                  "nothing was recorded: the job ended, without closing its session, before its first records "
                  "had been written");
  return refuse(VerdictOnly::kNoGpuActivity, "nothing was recorded: neither launches nor GPU operations");
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

void set_to(Diagnosis& diagnosis, VerdictOnly verdict, std::string reason) {
  diagnosis.verdict = kVerdictOnlyNames[static_cast<std::size_t>(verdict)];
  diagnosis.reason = std::move(reason);
}

// The dearest of the causes that our own time may be taken for, where it may be.
bool blame_own_overhead(Diagnosis& diagnosis, const Basis& job, double top) {
  const auto dearer = [&](FindingCause a, FindingCause b) { return job.cost_of(a) < job.cost_of(b); };
  const FindingCause cause =
      std::max(FindingCause::kLaunchOverhead, FindingCause::kHost, dearer);
  const double share = ratio(job.cost_of(cause), job.sum.wall);
  if (!own_cost_explains(job, cause) || share < kLeastShare || share <= top) return false;
  set_to(diagnosis, VerdictOnly::kOwnOverhead,
         fmt::format("{} would be {:.1f} % of wall, but {:.1f} % of wall was spent in gpudiag's own code, "
                     "which may be why",
                     name_of(cause), 100 * share, 100 * ratio(job.sum.own, job.sum.wall)));
  return true;
}

// Small and within what iterations differ by.
bool may_be_noise(const Finding& finding) {
  return finding.share < 2 * kLeastShare && finding.share - finding.share_margin < kLeastShare;
}

}  // namespace

std::optional<Diagnosis> refuse_findings(std::span<const RankBasis> ranks, const Basis& job) {
  std::uint64_t operations = 0;
  for (const RankBasis& rank : ranks) operations += rank.operations;
  if (operations == 0) return no_activity(ranks);
  return refuse_for_quality(ranks, job);
}

void set_verdict(Diagnosis& diagnosis, const Basis& job) {
  const double unknown = ratio(job.sum.idle_of(Cause::kUnknown), job.sum.wall);
  const double top = diagnosis.findings.empty() ? 0 : diagnosis.findings.front().share;
  if (unknown >= kUnknownDominates && unknown > top &&
      job.sum.idle_of(Cause::kUnknown).ns * 2 > job.sum.idle.ns)
    return set_to(diagnosis, VerdictOnly::kUnknown,
                  fmt::format("{:.1f} % of wall is idle without evidence of why", 100 * unknown));
  if (blame_own_overhead(diagnosis, job, top)) return;
  if (diagnosis.findings.empty())
    return set_to(diagnosis, VerdictOnly::kNone, "nothing that could be removed costs 2 % of wall time");
  if (std::all_of(diagnosis.findings.begin(), diagnosis.findings.end(), may_be_noise))
    return set_to(diagnosis, VerdictOnly::kNone,
                  "nothing that could be removed costs 2 % of wall time beyond what iterations differ by");
  const Finding& first = diagnosis.findings.front();
  diagnosis.verdict = name_of(first.cause);
  if (!first.together_with.empty()) {
    diagnosis.reason = fmt::format("it and {} hide each other: both cost {:.1f} % of wall time; without both an "
                                   "iteration would be {:.2f} times as fast",
                                   first.together_with, 100 * first.share, first.speedup_if_fixed);
    return;
  }
  diagnosis.reason = first.upper_bound
                         ? fmt::format("up to {:.1f} % of wall time hangs on it; an iteration would be at most "
                                       "{:.2f} times as fast",
                                       100 * first.share, first.speedup_if_fixed)
                         : fmt::format("it costs {:.1f} % of wall time; without it an iteration would be "
                                       "{:.2f} times as fast",
                                       100 * first.share, first.speedup_if_fixed);
}

}  // namespace gpudiag
