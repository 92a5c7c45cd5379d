// SPDX-License-Identifier: Apache-2.0
// Gradients reduced in buckets beside the backward pass, as DDP does: who comes early finds its later
// buckets queued behind the first, which waits for the late rank.
#include <gtest/gtest.h>

#include "attribution/ranks/job_report.hpp"
#include "summaries.hpp"

namespace gpudiag {
namespace {

using testing::all_reduce;
using testing::RankBuilder;

/// Forward 10 ms, backward 4 x 5 ms with a bucket of 0.1 ms after each 5, optimizer 2 ms. Rank 1 is held up
/// for 16 ms at the beginning of each iteration.
std::vector<RankSummary> two_ranks(std::uint32_t world) {
  std::vector<RankBuilder> ranks;
  for (std::uint32_t r = 0; r < world; ++r) ranks.emplace_back(r, world);
  const std::int64_t wall = 16'000 + 10'000 + 20'000 + 100 + 2'000;
  for (std::int64_t i = 0; i < 12; ++i) {
    const std::int64_t start = i * wall;
    for (std::uint32_t r = 0; r < world; ++r) {
      RankBuilder& rank = ranks[r];
      rank.iteration(static_cast<std::uint64_t>(i), start, wall);
      const std::int64_t own = r == 1 ? start + 16'000 : start;
      std::int64_t free = 0;
      for (std::int64_t b = 0; b < 4; ++b) {
        const std::int64_t asked = own + 10'000 + (b + 1) * 5'000;
        const std::int64_t end = start + 16'000 + 10'000 + (b + 1) * 5'000 + 100;
        rank.use(all_reduce("all", world, 25'000'000), std::max(asked, free), end);
        CollectiveUse& use = rank.made.uses.back();
        // Compute goes on until it has run out.
        const TimePoint done{(own + 30'000) * 1000};
        use.exposed = use.end - std::clamp(done, use.start, use.end);
        free = end;
      }
      rank.compute(32'000).idle(Cause::kHost, r == 1 ? 16'000 : 0);
      rank.made.iterations.back().communication = rank.made.iterations.back().wall - microseconds(r == 1 ? 48'000 : 32'000);
    }
  }
  std::vector<RankSummary> made;
  for (RankBuilder& rank : ranks) made.push_back(std::move(rank.made));
  return made;
}

TEST(Overlap, TheLateRankIsNamedThoughTheOthersBucketsAreQueued) {
  for (const std::uint32_t world : {2u, 3u, 8u}) {
    const JobReport report = analyze_job(two_ranks(world));
    ASSERT_EQ(report.blame.culprits.size(), 1u) << world;
    EXPECT_EQ(report.blame.culprits[0].ranks, std::vector<std::uint32_t>{1}) << world;
    EXPECT_EQ(report.blame.culprits[0].cause, Cause::kHost) << world;
    EXPECT_EQ(report.blame.culprits[0].pattern, LatePattern::kPersistent) << world;
    EXPECT_NEAR(static_cast<double>(report.blame.culprits[0].late.ns), 16e6, 0.2e6) << world;
    // An iteration of 48.1 ms would take 32.1.
    EXPECT_NEAR(report.blame.culprits[0].share, 16.0 / 48.1, 0.05) << world;
  }
}

}  // namespace
}  // namespace gpudiag
