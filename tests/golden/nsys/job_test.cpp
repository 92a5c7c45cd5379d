// SPDX-License-Identifier: Apache-2.0
// A real job of two processes in one export: what one sends, the other receives.
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/ranks/job_report.hpp"
#include "attribution/ranks/rank_recorder.hpp"
#include "sources/nsys_file/nsys_trace.hpp"
#include "traces_folder.hpp"

namespace gpudiag::golden {
namespace {

TEST(RealExportOfTwoRanks, TransfersMatchAcrossTheProcesses) {
  const std::filesystem::path path = traces_folder() / "nsys/two_gpu_after.sqlite";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " not run: no such export here; it comes from GindaChen/nsys-ai ab196ea2";
  const auto trace = read_nsys(path);
  ASSERT_TRUE(trace) << trace.error().message;
  std::vector<RankSummary> ranks;
  for (const RecordedProcess& process : trace->processes()) {
    if (process.operations == 0) continue;
    RankIdentity who;
    who.rank = static_cast<std::uint32_t>(ranks.size());
    who.world_size = 2;
    SummaryBuilder builder{who};
    RankRecorder recorder{trace->names(), nullptr, [&](auto&&... iteration) { builder.add(iteration...); }};
    Engine engine{{}, trace->names(), [&](const IterationLedger& ledger) { recorder.iteration(ledger); }};
    recorder.set_next(&engine);
    trace->deliver(process.id, recorder);
    engine.finish();
    for (RankSummary& summary : builder.take()) ranks.push_back(std::move(summary));
  }
  ASSERT_EQ(ranks.size(), 2u);
  const auto jobs = analyze_jobs(ranks);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_GT(jobs[0].counts.matched, 50u);
}

}  // namespace
}  // namespace gpudiag::golden
