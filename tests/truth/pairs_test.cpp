// SPDX-License-Identifier: Apache-2.0
// The engine against the truth: each trouble in each setting. See judge.hpp for how a figure is
// judged; `truth_benchmark --explain --only "sync in graphs"` shows a failure from all sides.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "scenarios.hpp"

namespace gpudiag::truth {
namespace {

std::string test_name(const ::testing::TestParamInfo<Scenario>& info) {
  std::string name = name_of(info.param);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '+'; }, '_');
  return name;
}

class CounterfactualPair : public ::testing::TestWithParam<Scenario> {};

TEST_P(CounterfactualPair, TroubleIsChargedWhatItReallyCosts) {
  for (const Verdict& verdict : judge(GetParam())) {
    EXPECT_GT(verdict.true_cost, 0.02 * verdict.wall)
        << "a pair whose trouble costs nothing proves nothing: " << explain(verdict);
    EXPECT_TRUE(verdict.right()) << explain(verdict);
  }
}

INSTANTIATE_TEST_SUITE_P(Basic, CounterfactualPair, ::testing::ValuesIn(basic_scenarios()),
                         test_name);

class HarmlessOddity : public ::testing::TestWithParam<Scenario> {};

TEST_P(HarmlessOddity, IsChargedNothing) {
  for (const Verdict& verdict : judge(GetParam())) {
    EXPECT_LT(std::abs(verdict.true_cost), 0.005 * verdict.wall)
        << "not harmless: " << explain(verdict);
    EXPECT_TRUE(verdict.right()) << explain(verdict);
  }
}

INSTANTIATE_TEST_SUITE_P(Controls, HarmlessOddity, ::testing::ValuesIn(harmless_scenarios()),
                         test_name);

std::string oddity_name(const ::testing::TestParamInfo<Oddity>& info) {
  const std::string troubles = info.param.plain.troubles.empty()
                                   ? "nothing"
                                   : std::string{name_of(*info.param.plain.troubles.begin())};
  return info.param.plain.setting + "_beside_" + troubles;
}

class HarmlessChange : public ::testing::TestWithParam<Oddity> {};

TEST_P(HarmlessChange, ChangesNothingInTheLedger) {
  const Difference difference = compare(GetParam().plain, GetParam().odd);
  EXPECT_LT(std::abs(difference.true_change), 0.005 * difference.wall)
      << "not harmless: " << explain(difference);
  EXPECT_TRUE(difference.right()) << explain(difference);
}

INSTANTIATE_TEST_SUITE_P(Controls, HarmlessChange, ::testing::ValuesIn(oddities()), oddity_name);

}  // namespace
}  // namespace gpudiag::truth
