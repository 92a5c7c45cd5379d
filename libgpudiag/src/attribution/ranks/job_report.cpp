// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/job_report.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "attribution/ranks/bandwidth.hpp"
#include "attribution/ranks/job_notes.hpp"
#include "attribution/ranks/late_cells.hpp"
#include "attribution/ranks/repeated_reductions.hpp"

namespace gpudiag {
namespace {

DurationNs median_of(std::vector<std::int64_t>& values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return {*middle};
}

std::vector<CollectiveSum> sum_collectives(const JobTable& table, const Lateness& lateness) {
  struct Sum {
    std::vector<std::int64_t> transfers;
    std::int64_t wait = 0;
    std::uint32_t seen = 0;
  };
  std::map<std::uint32_t, Sum> sums;
  for (std::size_t m = 0; m < table.matches.size(); ++m) {
    const Match& match = table.matches[m];
    Sum& sum = sums[match.about];
    sum.transfers.push_back(lateness.transfer[m].ns);
    sum.seen = std::max(sum.seen, match.count);
    TimePoint last = kTimeMin;
    for (const std::uint32_t id : table.members_of(match)) last = std::max(last, table.uses[id].arrival);
    for (const std::uint32_t id : table.members_of(match))
      sum.wait += (std::min(last, std::max(table.uses[id].end, table.uses[id].arrival)) - table.uses[id].arrival).ns;
  }
  std::vector<CollectiveSum> out;
  for (auto& [about, sum] : sums) {
    CollectiveSum made;
    made.about = table.abouts[about];
    made.group_size = std::max(made.about.group_size, sum.seen);
    made.count = sum.transfers.size();
    made.wait = {sum.wait};
    made.transfer = median_of(sum.transfers);
    made.algbw = algorithm_bandwidth(made.about.bytes, made.transfer);
    made.busbw = made.algbw * bus_factor(made.about.kind, made.group_size);
    out.push_back(std::move(made));
  }
  const auto weight = [](const CollectiveSum& c) {
    return c.wait.ns + c.transfer.ns * static_cast<std::int64_t>(c.count) * static_cast<std::int64_t>(c.group_size);
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const CollectiveSum& a, const CollectiveSum& b) { return weight(a) > weight(b); });
  return out;
}

/// Training iterations at their median length are progress; what they took beyond it, and all else,
/// is not.
Goodput measure_goodput(std::span<const RankSummary> ranks) {
  Goodput goodput;
  double wall = 0;
  double training = 0;
  double effective = 0;
  double nominal = 0;
  for (const RankSummary& rank : ranks) {
    if (rank.iterations.empty()) continue;
    std::vector<std::int64_t> walls;
    for (const RankIteration& i : rank.iterations) {
      effective += static_cast<double>(i.compute.ns);
      nominal += static_cast<double>((i.wall - i.idle).ns);
      if (i.phase == Phase::kTrain && i.valid && !i.partial) walls.push_back(i.wall.ns);
    }
    const auto usual = median_of(walls);
    for (const std::int64_t w : walls) training += static_cast<double>(std::min(w, usual.ns));
    wall += static_cast<double>((rank.iterations.back().end() - rank.iterations.front().start).ns);
  }
  if (wall <= 0) return goodput;
  goodput.wall = {static_cast<std::int64_t>(wall / static_cast<double>(ranks.size()))};
  goodput.training = std::min(1.0, training / wall);
  goodput.effective = std::min(1.0, effective / wall);
  goodput.nominal = std::min(1.0, nominal / wall);
  return goodput;
}

void sum_ranks(JobReport& report, std::span<const RankSummary> ranks, const JobTable& table, const LateCells& cells) {
  const std::size_t n = table.iteration_count();
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankShare share;
    share.rank = ranks[r].who.rank;
    for (std::size_t i = 0; i < n; ++i) {
      const RankIteration* iteration = table.iteration_of(r, i);
      if (!is_comparable(iteration)) continue;
      ++share.iterations;
      share.communication += iteration->communication;
      share.late += cells.late[r * n + i];
      if (const auto& wait = report.waits[r * n + i]) {
        share.straggler_wait += wait->straggler_wait;
        share.transfer += wait->transfer;
      }
    }
    report.ranks.push_back(share);
  }
}

void list_iterations(JobReport& report, std::span<const RankSummary> ranks, const JobTable& table,
                     const Lateness& lateness, const LateCells& cells) {
  const std::size_t n = table.iteration_count();
  for (std::size_t i = 0; i < n; ++i) {
    JobIteration iteration;
    iteration.index = table.indices[i];
    iteration.wall = lateness.step[i];
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const DurationNs late = cells.late[r * n + i];
      if (late <= iteration.late) continue;
      iteration.late = late;
      iteration.slowest = ranks[r].who.rank;
    }
    report.iterations.push_back(iteration);
  }
}

/// Told apart before anything is matched.
using JobKey = std::tuple<std::string, std::uint32_t, std::uint32_t, std::size_t>;

}  // namespace

JobReport analyze_job(std::span<const RankSummary> ranks) {
  JobReport report;
  JobTable table = make_job_table(ranks);
  const ClockFit clocks = fit_clocks(ranks, table);
  align(table, clocks);
  const Roles roles = find_roles(table, ranks.size());
  const Lateness lateness = measure_lateness(table, clocks, roles, ranks.size());
  const LateCells cells = find_late_cells(table, lateness, ranks.size());
  report.blame = find_culprits(ranks, table, clocks, roles, lateness);
  report.counts = table.counts;
  report.clocks = clocks.clocks;
  report.indices = table.indices;
  report.roles = roles.members.size();
  report.waits = divide_communication(table, ranks.size());
  report.collectives = sum_collectives(table, lateness);
  report.goodput = measure_goodput(ranks);
  report.repeated_reductions = find_repeated_reductions(table, ranks.size());
  for (const RankSummary& rank : ranks) report.world_size = std::max(report.world_size, rank.who.world_size);
  if (!ranks.empty()) {
    report.job = ranks.front().who.job;
    report.restart = ranks.front().who.restart;
  }
  sum_ranks(report, ranks, table, cells);
  list_iterations(report, ranks, table, lateness, cells);
  report.notes = notes_on(ranks, table, clocks);
  report.members.resize(ranks.size());
  std::iota(report.members.begin(), report.members.end(), std::size_t{0});
  return report;
}

std::vector<JobReport> analyze_jobs(std::span<const RankSummary> summaries) {
  std::map<JobKey, std::vector<std::size_t>> jobs;
  std::map<std::tuple<std::string, std::uint32_t, std::uint32_t, std::uint32_t, DeviceId>, std::size_t> claimed;
  for (std::size_t s = 0; s < summaries.size(); ++s) {
    const RankIdentity& who = summaries[s].who;
    // Nothing says that files without a job and a world size belong together.
    if (who.world_size < 2 && who.job.empty()) continue;
    // Two that claim to be the same rank of the same job are two jobs, or one has left a file too many.
    const std::size_t again = claimed[{who.job, who.restart, who.world_size, who.rank, who.device}]++;
    jobs[{who.job, who.restart, who.world_size, again}].push_back(s);
  }
  std::vector<JobReport> reports;
  std::vector<JobNote> left;
  for (auto& [key, members] : jobs) {
    std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
      return std::pair{summaries[a].who.rank, summaries[a].who.device} <
             std::pair{summaries[b].who.rank, summaries[b].who.device};
    });
    if (members.size() < 2) {
      left.push_back(left_over(summaries[members.front()], std::get<3>(key) > 0));
      continue;
    }
    std::vector<RankSummary> ranks;
    for (const std::size_t s : members) ranks.push_back(summaries[s]);
    JobReport report = analyze_job(ranks);
    // Operations that found no counterpart more often than not are those of different jobs.
    if (report.counts.matched * 2 < report.counts.uses || report.counts.matched == 0) continue;
    report.members = members;
    reports.push_back(std::move(report));
  }
  std::stable_sort(reports.begin(), reports.end(), [](const JobReport& a, const JobReport& b) {
    return a.counts.uses > b.counts.uses;
  });
  if (!reports.empty()) reports.front().notes.insert(reports.front().notes.end(), left.begin(), left.end());
  if (reports.size() > 1) note_generations(reports);
  return reports;
}

std::optional<JobIteration> compare_latest(std::span<const RankSummary> ranks) {
  std::map<std::uint64_t, std::size_t> seen;
  for (const RankSummary& rank : ranks)
    for (const RankIteration& iteration : rank.iterations) ++seen[iteration.index];
  std::optional<std::uint64_t> latest;
  for (const auto& [index, count] : seen)
    if (count == ranks.size()) latest = index;
  if (!latest) return std::nullopt;
  const JobReport report = analyze_job(ranks);
  for (const JobIteration& iteration : report.iterations)
    if (iteration.index == *latest) return iteration;
  return std::nullopt;
}

}  // namespace gpudiag
