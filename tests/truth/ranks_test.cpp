// SPDX-License-Identifier: Apache-2.0
// The comparison of ranks on made-up jobs of 256 ranks; ranks_table does it on thousands.
#include <gtest/gtest.h>

#include <string>

#include "ranks/judge.hpp"

namespace ranks_model {
namespace {

struct Case {
  Layout layout;
  Fault fault;
};

class Ranks : public ::testing::TestWithParam<Case> {};

TEST_P(Ranks, TheGuiltyOneIsNamedWithWhatIsWrongAndInAHealthyJobNobody) {
  Options options;
  options.ranks = 256;
  options.layout = GetParam().layout;
  options.fault = GetParam().fault;
  options.seed = 42;
  const Job job = make_job(options);
  const Verdict verdict = judge(job, options.fault, gpudiag::analyze_job(job.ranks));
  EXPECT_TRUE(verdict.rank_right) << verdict.said;
  EXPECT_TRUE(verdict.kind_right) << verdict.said;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (std::size_t l = 0; l < kLayoutNames.size(); ++l)
    for (std::size_t f = 0; f < kFaultNames.size(); ++f) cases.push_back({static_cast<Layout>(l), static_cast<Fault>(f)});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(MadeUp, Ranks, ::testing::ValuesIn(all_cases()), [](const auto& test) {
  return std::string{kLayoutNames[static_cast<std::size_t>(test.param.layout)]} + "_" +
         std::string{kFaultNames[static_cast<std::size_t>(test.param.fault)]};
});

TEST(RanksOrder, TheOrderInWhichRanksAreGivenDoesNotMatter) {
  Options options;
  options.ranks = 64;
  options.layout = Layout::kPipeline;
  options.fault = Fault::kSlowCompute;
  Job job = make_job(options);
  const gpudiag::JobReport one = gpudiag::analyze_jobs(job.ranks).at(0);
  std::swap(job.ranks[3], job.ranks[40]);
  std::swap(job.ranks[0], job.ranks[63]);
  const gpudiag::JobReport other = gpudiag::analyze_jobs(job.ranks).at(0);
  ASSERT_EQ(one.blame.culprits.size(), other.blame.culprits.size());
  for (std::size_t k = 0; k < one.blame.culprits.size(); ++k)
    EXPECT_EQ(one.blame.culprits[k].ranks, other.blame.culprits[k].ranks);
}

}  // namespace
}  // namespace ranks_model
