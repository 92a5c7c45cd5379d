// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/summary_file.hpp"

#include <gtest/gtest.h>

#include "summaries.hpp"

namespace gpudiag {
namespace {

using testing::data_parallel_job;

RankSummary sample() {
  RankSummary rank = data_parallel_job(3, 12, [](std::uint32_t r, std::uint32_t) { return r == 1 ? 4'000 : 0; })[1];
  rank.who.pid = 77;
  rank.who.local_rank = 1;
  rank.who.device = DeviceId{3};
  rank.who.origin_unix_ns = 1'736'412'345'678'901'234;
  rank.who.restart = 2;
  rank.who.device_name = "NVIDIA H100 80GB HBM3";
  rank.who.pci = "0000:3b:00.0";
  rank.who.numa_node = 1;
  rank.who.version = "0.1";
  rank.who.source = "live";
  rank.iterations[3].valid = false;
  rank.iterations[4].partial = true;
  rank.iterations[5].phase = Phase::kEvaluation;
  return rank;
}

std::string written(const RankSummary& rank, bool finish = true, std::size_t flush_every = 5) {
  std::string bytes;
  SummaryWriter writer{rank.who, [&](std::string_view more) {
                         bytes += more;
                         return true;
                       }};
  for (std::size_t i = 0; i < rank.iterations.size(); ++i) {
    writer.add(rank.iterations[i], rank.uses_of(rank.iterations[i]), rank.abouts);
    if (i % flush_every == flush_every - 1) writer.flush();
  }
  if (finish) writer.finish();
  else writer.flush();
  EXPECT_EQ(writer.bytes(), bytes.size());
  return bytes;
}

TEST(SummaryFile, ReadsBackWhatWasWritten) {
  const RankSummary rank = sample();
  const auto back = read_summary(written(rank));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->who, rank.who);
  EXPECT_EQ(back->abouts, rank.abouts);
  EXPECT_EQ(back->iterations, rank.iterations);
  EXPECT_EQ(back->uses, rank.uses);
  EXPECT_TRUE(back->finished);
  EXPECT_FALSE(back->truncated);
  EXPECT_EQ(back->broken, 0u);
}

TEST(SummaryFile, OfAKilledJobWhatWasFlushedIsThere) {
  const RankSummary rank = sample();
  const std::string bytes = written(rank, false);
  const auto back = read_summary(std::string_view{bytes}.substr(0, bytes.size() - 7));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->iterations.size(), 10u);
  EXPECT_TRUE(back->truncated);
  EXPECT_FALSE(back->finished);
}

TEST(SummaryFile, ADamagedFrameCostsItselfAlone) {
  const RankSummary rank = sample();
  std::string bytes = written(rank);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x40);
  const auto back = read_summary(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->broken, 1u);
  EXPECT_EQ(back->iterations.size(), 7u);
  EXPECT_TRUE(back->finished);
}

TEST(SummaryFile, NoCutAndNoFlippedByteIsTrouble) {
  const std::string bytes = written(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto back = read_summary(std::string_view{bytes}.substr(0, size));
    if (back) EXPECT_LE(back->iterations.size(), 12u);
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string other = bytes;
    other[at] = static_cast<char>(~other[at]);
    if (const auto back = read_summary(other)) EXPECT_LE(back->iterations.size(), 12u);
  }
}

TEST(SummaryFile, OtherFilesAreRefused) {
  EXPECT_FALSE(read_summary(""));
  EXPECT_FALSE(read_summary("gpudiag.records/1\n"));
  EXPECT_NE(read_summary("gpudiag.ranks/9\n...").error().message.find("gpudiag.ranks/9"), std::string::npos);
}

// 400 collectives an iteration, with lengths of milliseconds: the largest an iteration gets.
TEST(SummaryFile, AnIterationTakesAtMost2700Bytes) {
  RankSummary rank = sample();
  const std::size_t before = written(rank).size();
  RankIteration iteration;
  iteration.index = 1'000'000;
  iteration.start = TimePoint{} + seconds(10'000);
  iteration.wall = seconds(3);
  for (std::size_t c = 0; c < kCauseCount; ++c) iteration.idle_by_cause[c] = milliseconds(100);
  std::vector<CollectiveUse> uses;
  for (int k = 0; k < 400; ++k) {
    CollectiveUse use;
    use.sequence = static_cast<std::uint32_t>(1'000'000 + k);
    use.arrival = iteration.start + milliseconds(7 * k);
    use.start = use.arrival + microseconds(10);
    use.end = use.start + milliseconds(5);
    use.exposed = milliseconds(2);
    uses.push_back(use);
  }
  iteration.first_use = static_cast<std::uint32_t>(rank.uses.size());
  iteration.use_count = 400;
  rank.uses.insert(rank.uses.end(), uses.begin(), uses.end());
  rank.iterations.push_back(iteration);
  const std::string bytes = written(rank);
  EXPECT_LE(bytes.size() - before, 2'700u);
  const auto back = read_summary(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->iterations.back().left_out, 266u);
  EXPECT_EQ(back->iterations.back().use_count, 134u);
}

}  // namespace
}  // namespace gpudiag
