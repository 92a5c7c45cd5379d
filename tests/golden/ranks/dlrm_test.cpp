// SPDX-License-Identifier: Apache-2.0
// The eight ranks of a DLRM step on one machine, merged. The expected figures are those of
// dlrm_by_hand.py, which knows nothing of gpudiag.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "attribution/engine.hpp"
#include "attribution/ranks/job_report.hpp"
#include "attribution/ranks/rank_recorder.hpp"
#include "sources/kineto_file/kineto_trace.hpp"
#include "traces_folder.hpp"

namespace gpudiag {
namespace {

struct ByHand {
  std::int64_t exposed_us;
  std::int64_t wait_us;
};
constexpr std::array<ByHand, 8> kByHand{
    {{5537, 5319}, {11056, 10845}, {3217, 3005}, {9450, 9247}, {6550, 6333}, {6211, 6001}, {3289, 3073}, {1580, 1368}}};

std::vector<RankSummary> read_all(const std::filesystem::path& folder) {
  std::vector<RankSummary> ranks;
  for (std::uint32_t r = 0; r < 8; ++r) {
    const auto trace = read_kineto(folder / ("rank" + std::to_string(r) + ".json.gz"), {});
    if (!trace) {
      ADD_FAILURE() << trace.error().message;
      continue;
    }
    RankIdentity who;
    who.rank = trace->info().rank.value_or(99);
    who.world_size = trace->info().world_size.value_or(0);
    who.origin_unix_ns = std::stoll(trace->info().origin_unix_ns);
    SummaryBuilder builder{who};
    RankRecorder recorder{trace->names(), nullptr, [&](auto&&... iteration) { builder.add(iteration...); }};
    Engine engine{EngineOptions{}, trace->names(), [&](const IterationLedger& ledger) { recorder.iteration(ledger); }};
    recorder.set_next(&engine);
    trace->deliver(trace->processes().front().id, recorder);
    engine.finish();
    for (RankSummary& summary : builder.take()) ranks.push_back(std::move(summary));
  }
  return ranks;
}

TEST(Dlrm, AllEightRanksAreMergedAndEveryCollectiveIsMatched) {
  const auto folder = golden::traces_folder() / "dlrm_8_ranks";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << golden::kTraceSources;
  const auto ranks = read_all(folder);
  const auto jobs = analyze_jobs(ranks);
  ASSERT_EQ(jobs.size(), 1u);
  const JobReport& job = jobs.front();
  EXPECT_EQ(job.members.size(), 8u);
  EXPECT_EQ(job.counts.uses, 64u);
  EXPECT_EQ(job.counts.matched, 64u);
  EXPECT_EQ(job.counts.collectives, 8u);
  EXPECT_EQ(job.counts.kinds_differ, 0u);
}

// Their clocks are one; ours are aligned rank by rank on ends that differ by a few microseconds.
TEST(Dlrm, WaitsAndExposedCommunicationAreThoseComputedByHand) {
  const auto folder = golden::traces_folder() / "dlrm_8_ranks";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << golden::kTraceSources;
  const auto ranks = read_all(folder);
  const JobReport job = analyze_job(ranks);
  for (std::size_t r = 0; r < 8; ++r) {
    DurationNs exposed;
    for (const CollectiveUse& use : ranks[r].uses) exposed += use.exposed;
    EXPECT_EQ(exposed, microseconds(kByHand[r].exposed_us)) << r;
    DurationNs wait;
    for (std::size_t i = 0; i < job.indices.size(); ++i)
      if (const auto& of = job.waits[r * job.indices.size() + i]) wait += of->straggler_wait;
    EXPECT_NEAR(static_cast<double>(wait.ns) / 1e3, static_cast<double>(kByHand[r].wait_us), 40) << r;
  }
}

}  // namespace
}  // namespace gpudiag
