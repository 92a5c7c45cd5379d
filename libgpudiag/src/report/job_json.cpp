// SPDX-License-Identifier: Apache-2.0
#include "report/job_json.hpp"

namespace gpudiag {
namespace {

void write_about(JsonWriter& json, const CollectiveInfo& about) {
  json.field("kind", name_of(about.kind)).field("bytes", about.bytes).field("datatype", about.datatype);
  json.field("reduction", about.reduction).field("algorithm", about.algorithm).field("protocol", about.protocol);
}

void write_sums(JsonWriter& json, const JobReport& job) {
  json.key("operations").begin_array();
  for (const CollectiveSum& sum : job.collectives) {
    json.begin_object();
    write_about(json, sum.about);
    json.field("group_size", sum.group_size).field("count", sum.count).field("transfer_median_ns", sum.transfer);
    json.field("wait_ns", sum.wait).field("algbw_gb_s", sum.algbw).field("busbw_gb_s", sum.busbw).end_object();
  }
  json.end_array();
}

void write_culprit(JsonWriter& json, const Culprit& culprit) {
  json.begin_object().field("kind", name_of(culprit.kind)).field("pattern", name_of(culprit.pattern));
  json.field("cause", name_of(culprit.cause)).field("sub_cause", name_of(culprit.sub_cause));
  json.field("period", culprit.period).field("host", culprit.host).field("whole_job", culprit.whole_job);
  json.key("ranks").begin_array();
  for (const std::uint32_t rank : culprit.ranks) json.value(rank);
  json.end_array().field("late_ns", culprit.late).field("cost_ns_per_iteration", culprit.cost_per_iteration);
  json.field("share", culprit.share).key("iterations").begin_array();
  for (const std::uint64_t index : culprit.iterations) json.value(index);
  json.end_array().field("iterations_seen", culprit.iterations_seen);
  if (culprit.kind == CulpritKind::kNetwork) {
    json.key("collective").begin_object();
    write_about(json, culprit.collective);
    json.field("achieved_busbw_gb_s", culprit.achieved_busbw).field("usual_busbw_gb_s", culprit.usual_busbw).end_object();
  }
  json.end_object();
}

void write_ranks(JsonWriter& json, const JobReport& job) {
  json.key("ranks").begin_array();
  const std::size_t n = job.indices.size();
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    const RankShare& rank = job.ranks[r];
    json.begin_object().field("rank", rank.rank).field("compared_iterations", rank.iterations);
    json.field("communication_ns", rank.communication).field("straggler_wait_ns", rank.straggler_wait);
    json.field("transfer_ns", rank.transfer).field("late_ns", rank.late).key("iterations").begin_array();
    for (std::size_t i = 0; i < n; ++i) {
      const auto& wait = job.waits[r * n + i];
      if (!wait) continue;
      json.begin_object().field("index", job.indices[i]).field("straggler_wait_ns", wait->straggler_wait);
      json.field("transfer_ns", wait->transfer).field("unmatched_ns", wait->unmatched).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void write_clocks(JsonWriter& json, const JobReport& job) {
  json.key("clocks").begin_array();
  for (const HostClock& clock : job.clocks) {
    json.begin_object().field("host", clock.host).field("offset_ns", clock.offset).field("drift_ppm", clock.drift_ppm);
    json.field("tied", clock.tied).field("jumped", clock.jumped).field("scatter_ns", clock.scatter).end_object();
  }
  json.end_array();
}

void write_counts(JsonWriter& json, const MatchCounts& counts) {
  json.key("matching").begin_object().field("operations", counts.uses).field("matched", counts.matched);
  json.field("collectives", counts.collectives).field("alone", counts.alone).field("incomplete", counts.incomplete);
  json.field("kinds_differ", counts.kinds_differ).end_object();
}

void write_job(JsonWriter& json, const JobReport& job) {
  json.field("job", job.job).field("world_size", job.world_size).field("restart", job.restart);
  json.field("ranks_seen", job.ranks.size()).field("roles", job.roles);
  write_counts(json, job.counts);
  json.key("notes").begin_array();
  for (const JobNote& note : job.notes) json.begin_object().field("code", note.code).field("text", note.text).end_object();
  json.end_array().key("culprits").begin_array();
  for (const Culprit& culprit : job.blame.culprits) write_culprit(json, culprit);
  json.end_array().key("what_if").begin_object().field("recorded_ns", job.blame.what_if.recorded);
  json.field("without_culprits_ns", job.blame.what_if.without_culprits).field("ideal_ns", job.blame.what_if.ideal).end_object();
  json.key("goodput").begin_object().field("wall_ns", job.goodput.wall).field("training", job.goodput.training);
  json.field("effective", job.goodput.effective).field("nominal", job.goodput.nominal).end_object();
  json.field("repeated_reductions", job.repeated_reductions).key("iterations").begin_array();
  for (const JobIteration& iteration : job.iterations)
    json.begin_object().field("index", iteration.index).field("wall_ns", iteration.wall)
        .field("slowest_rank", iteration.slowest).field("late_ns", iteration.late).end_object();
  json.end_array();
  write_sums(json, job);
  write_clocks(json, job);
  write_ranks(json, job);
}

}  // namespace

void write_jobs(JsonWriter& json, std::span<const JobReport> jobs) {
  json.begin_object();
  if (!jobs.empty()) {
    write_job(json, jobs.front());
    json.key("others").begin_array();
    for (const JobReport& job : jobs.subspan(1)) {
      json.begin_object();
      write_job(json, job);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

}  // namespace gpudiag
