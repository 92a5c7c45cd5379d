// SPDX-License-Identifier: Apache-2.0
#include "report/job_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "attribution/ranks/job_findings.hpp"
#include "report/text_line.hpp"

namespace gpudiag {
namespace {

// Ranks and operations listed one by one.
constexpr std::size_t kListed = 16;
constexpr std::size_t kOperations = 6;

DurationNs mean(DurationNs sum, std::uint64_t count) {
  return {count == 0 ? 0 : sum.ns / static_cast<std::int64_t>(count)};
}

std::string say_culprit(const Culprit& culprit) {
  if (culprit.kind == CulpritKind::kStage)
    return fmt::format("{} of one stage work {} an iteration more than the other stages: {:.1f} % of the job's time",
                       who_of(culprit), format_time(culprit.late), 100 * culprit.share);
  if (culprit.kind == CulpritKind::kNetwork)
    return fmt::format("{}: slow transfers, +{} in {} of {} iterations ({}): {:.1f} % of the job's time", who_of(culprit),
                       format_time(culprit.late), culprit.iterations.size(), culprit.iterations_seen, how_often(culprit),
                       100 * culprit.share);
  return fmt::format("{} +{} {} in {} of {} iterations ({}): {:.1f} % of the job's time", who_of(culprit),
                     format_time(culprit.late), why_of(culprit), culprit.iterations.size(), culprit.iterations_seen,
                     how_often(culprit), 100 * culprit.share);
}

std::string say_rank(const RankShare& rank) {
  std::string text = fmt::format("rank {}: waits {}, transfer {}", rank.rank,
                                 format_time(mean(rank.straggler_wait, rank.iterations)),
                                 format_time(mean(rank.transfer, rank.iterations)));
  if (rank.late.ns > 0) text += fmt::format(", late {}", format_time(mean(rank.late, rank.iterations)));
  return text;
}

// The extremes and the middle say as much as thousands of lines.
void say_waits(const JobReport& job, std::vector<std::string>& out) {
  std::vector<RankShare> ranks;
  for (const RankShare& rank : job.ranks)
    if (rank.iterations > 0) ranks.push_back(rank);
  if (ranks.empty()) return;
  if (ranks.size() <= kListed) {
    out.push_back("an iteration, on the mean:");
    for (const RankShare& rank : ranks) out.push_back("  " + say_rank(rank));
    return;
  }
  std::sort(ranks.begin(), ranks.end(), [](const RankShare& a, const RankShare& b) {
    return a.straggler_wait < b.straggler_wait;
  });
  out.push_back(fmt::format("an iteration, on the mean, of {} ranks by how long they wait for others:", ranks.size()));
  out.push_back("  least   " + say_rank(ranks.front()));
  out.push_back("  median  " + say_rank(ranks[ranks.size() / 2]));
  out.push_back("  most    " + say_rank(ranks.back()));
}

void say_operations(const JobReport& job, std::vector<std::string>& out) {
  const std::size_t shown = std::min(kOperations, job.collectives.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const CollectiveSum& sum = job.collectives[k];
    std::string text = fmt::format("{} x {} of {} ranks", sum.count, name_of(sum.about.kind), sum.group_size);
    if (sum.about.bytes > 0)
      text += fmt::format(", {:.1f} MB: algbw {:.1f}, busbw {:.1f} GB/s", static_cast<double>(sum.about.bytes) / 1e6,
                          sum.algbw, sum.busbw);
    text += fmt::format("; transfer {} (median), waits {} over all ranks", format_time(sum.transfer), format_time(sum.wait));
    out.push_back(std::move(text));
  }
  if (shown < job.collectives.size()) out.push_back(fmt::format("and {} other kinds of operations", job.collectives.size() - shown));
}

}  // namespace

std::vector<std::string> job_text(const JobReport& job) {
  std::vector<std::string> out;
  out.push_back(fmt::format("{} ranks{} compared{}: {} of {} operations matched in {} collectives", job.ranks.size(),
                            job.world_size > job.ranks.size() ? fmt::format(" of {}", job.world_size) : "",
                            job.job.empty() ? "" : fmt::format(", job {}", job.job), job.counts.matched, job.counts.uses,
                            job.counts.collectives));
  for (const JobNote& note : job.notes) out.push_back("note: " + note.text);
  if (job.blame.culprits.empty()) out.push_back("no rank and no link holds the others up by 2 % of the job's time or more");
  for (const Culprit& culprit : job.blame.culprits) out.push_back(say_culprit(culprit));
  if (job.repeated_reductions > 1)
    out.push_back(fmt::format("the same gradients are reduced {} times an iteration: with gradient accumulation only the last "
                              "micro-batch needs it (no_sync, set_requires_gradient_sync)", job.repeated_reductions));
  say_waits(job, out);
  say_operations(job, out);
  if (job.goodput.wall.ns > 0)
    out.push_back(fmt::format("of the job's time {:.1f} % is training at its usual pace; the GPUs compute {:.1f} %, and look "
                              "busy {:.1f} %", 100 * job.goodput.training, 100 * job.goodput.effective, 100 * job.goodput.nominal));
  return out;
}

}  // namespace gpudiag
