// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/job_findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "attribution/advice.hpp"
#include "attribution/ranks/job_notes.hpp"

namespace gpudiag {
namespace {

double ms(DurationNs time) { return static_cast<double>(time.ns) / 1e6; }

FindingCause finding_cause_of(const Culprit& culprit) {
  switch (culprit.kind) {
    case CulpritKind::kData:
    case CulpritKind::kHost: return finding_cause(culprit.cause);
    case CulpritKind::kCopy: return FindingCause::kCopy;
    case CulpritKind::kNetwork: return FindingCause::kCommunication;
    default: return FindingCause::kStraggler;
  }
}

std::string advice_of(const Culprit& culprit, FindingCause cause) {
  switch (culprit.kind) {
    case CulpritKind::kCompute:
      return culprit.host.empty()
                 ? "Its kernels take longer than those of ranks with the same work: look at its clocks, temperature, "
                   "power limit and other processes on the GPU, and at whether its batches are larger."
                 : "The kernels of this host's GPUs take longer than elsewhere: look at its cooling, power limits and clocks.";
    case CulpritKind::kNetwork:
      return culprit.whole_job
                 ? "No rank comes late, the transfer itself is slow: compare NCCL's choice of network (NCCL_DEBUG=INFO) with "
                   "what the hosts have."
                 : "Only collectives of these ranks are slow: look at the link between them, its errors and its speed "
                   "(nvidia-smi nvlink -e, ibstat), and at whether NCCL goes round it.";
    case CulpritKind::kStage:
      return "Move layers from this stage of the pipeline to the others: all its ranks have more to do.";
    case CulpritKind::kUnknown: return "Its ledger does not say why it is late: look at its iterations one by one.";
    default: return std::string{advice_for(cause, culprit.sub_cause, Wording::kPlain)};
  }
}

std::vector<std::string> evidence_of(const Culprit& culprit) {
  std::vector<std::string> evidence;
  if (culprit.kind == CulpritKind::kStage) {
    evidence.push_back(fmt::format("{} work {:.1f} ms an iteration more than a stage does on average", who_of(culprit), ms(culprit.late)));
    return evidence;
  }
  if (culprit.kind == CulpritKind::kNetwork) {
    evidence.push_back(fmt::format("{}: transfers take {:.1f} ms longer than elsewhere in {} of {} iterations ({})",
                                   who_of(culprit), ms(culprit.late), culprit.iterations.size(), culprit.iterations_seen,
                                   how_often(culprit)));
    if (culprit.usual_busbw > 0)
      evidence.push_back(fmt::format("{} of {} bytes: {:.1f} GB/s (busbw), {:.1f} elsewhere", name_of(culprit.collective.kind),
                                     culprit.collective.bytes, culprit.achieved_busbw, culprit.usual_busbw));
    return evidence;
  }
  evidence.push_back(fmt::format("{} {} late by {:.1f} ms by {} own work in {} of {} iterations ({}), the others wait",
                                 who_of(culprit), culprit.ranks.size() == 1 ? "is" : "are", ms(culprit.late),
                                 culprit.ranks.size() == 1 ? "its" : "their", culprit.iterations.size(),
                                 culprit.iterations_seen, how_often(culprit)));
  return evidence;
}

Finding finding_of(const Culprit& culprit) {
  Finding finding;
  finding.cause = finding_cause_of(culprit);
  finding.sub_cause = culprit.sub_cause;
  if (culprit.ranks.size() == 1) finding.rank = culprit.ranks.front();
  finding.share = finding.ranked_by = culprit.share;
  finding.cost_per_iteration = culprit.cost_per_iteration;
  finding.speedup_if_fixed = 1 / std::max(1 - culprit.share, 0.001);
  finding.evidence = evidence_of(culprit);
  finding.advice = advice_of(culprit, finding.cause);
  finding.confidence = culprit.iterations_seen >= 10 ? Confidence::kHigh
                       : culprit.iterations_seen >= 3 ? Confidence::kMedium
                                                      : Confidence::kLow;
  return finding;
}

}  // namespace

std::string who_of(const Culprit& culprit) {
  if (culprit.whole_job) return "the network of all ranks";
  const std::string ranks = fmt::format("rank{} {}", culprit.ranks.size() == 1 ? "" : "s", number_list(culprit.ranks));
  return culprit.host.empty() ? ranks : fmt::format("host {} ({})", culprit.host, ranks);
}

std::string how_often(const Culprit& culprit) {
  switch (culprit.pattern) {
    case LatePattern::kPersistent: return "persistent";
    case LatePattern::kPeriodic: return fmt::format("about every {} iterations", culprit.period);
    case LatePattern::kRotating: return "one after another";
    case LatePattern::kSporadic: return "now and then";
  }
  return {};
}

std::string why_of(const Culprit& culprit) {
  if (culprit.kind != CulpritKind::kData && culprit.kind != CulpritKind::kHost) return std::string{name_of(culprit.kind)};
  std::string text{name_of(culprit.cause)};
  if (culprit.sub_cause != SubCause::kNone) text += fmt::format(" ({})", name_of(culprit.sub_cause));
  return text;
}

void add_culprits(Diagnosis& diagnosis, const JobReport& job) {
  if (job.blame.culprits.empty()) return;
  for (const Culprit& culprit : job.blame.culprits) {
    Finding finding = finding_of(culprit);
    std::erase_if(diagnosis.findings, [&](const Finding& other) {
      return other.cause == finding.cause && other.rank && other.rank == finding.rank;
    });
    diagnosis.findings.push_back(std::move(finding));
  }
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.ranked_by > b.ranked_by; });
  const Culprit& worst = job.blame.culprits.front();
  const Finding& first = diagnosis.findings.front();
  const bool refused = diagnosis.verdict == "poor_quality" || diagnosis.verdict == "no_gpu_activity";
  if (refused || first.share != worst.share || first.cause != finding_cause_of(worst)) return;
  diagnosis.verdict = name_of(first.cause);
  diagnosis.reason = fmt::format("{} {} the job up ({}): {:.1f} % of its time; without that an iteration would be {:.2f} times as fast",
                                 who_of(worst), worst.ranks.size() == 1 ? "holds" : "hold", why_of(worst), 100 * worst.share,
                                 first.speedup_if_fixed);
}

}  // namespace gpudiag
