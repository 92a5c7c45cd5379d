// SPDX-License-Identifier: Apache-2.0
// What the search for iterations must and must not say, over all jobs of the table.
#include <gtest/gtest.h>

#include <algorithm>

#include "iterations/iteration_judge.hpp"

namespace gpudiag::truth {
namespace {

std::string say(const JobPlan& plan, const Judgement& judged) {
  return plan.name + ", " + std::to_string(plan.launches) + " launches, noise " + std::to_string(plan.noise) + ", seed " +
         std::to_string(plan.seed) + ": matched " + std::to_string(judged.matched) + " of " +
         std::to_string(judged.expected) + ", invented " + std::to_string(judged.invented);
}

std::vector<JobPlan> without_noise() {
  std::vector<JobPlan> plans = iteration_plans(0);
  std::erase_if(plans, [](const JobPlan& plan) { return plan.noise > 0; });
  return plans;
}

// Nothing of a name is left, neither what an optimizer's says.
std::string number_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return "k" + std::to_string(hash);
}

// Other names, among which those of optimizers are optimizers' still.
std::string wrapped(const std::string& name) { return "ns9::" + name + "<float, 7>"; }

TEST(IterationTable, IsRightInNinetyNineOfAHundredAndWrongInNone) {
  std::size_t right = 0;
  const std::vector<JobPlan> plans = iteration_plans();
  for (const JobPlan& plan : plans) {
    const Judgement judged = judge(plan);
    right += judged.answer == Answer::kRight ? 1 : 0;
    EXPECT_NE(judged.answer, Answer::kWrong) << say(plan, judged);
  }
  EXPECT_GE(plans.size(), 60u);
  EXPECT_GE(100 * right, 99 * plans.size());
}

TEST(IterationTable, IsRightEachTimeWhereNothingIsLost) {
  for (const JobPlan& plan : without_noise()) {
    const Judgement judged = judge(plan);
    EXPECT_EQ(judged.answer, Answer::kRight) << say(plan, judged);
  }
}

TEST(IterationTable, AClockThatIsShiftedChangesNothing) {
  for (const JobPlan& plan : without_noise()) {
    const LaunchJob job = make_job(plan);
    const auto here = turns_of(job), there = turns_of(job, nullptr, 3'600'000'000'000);
    ASSERT_EQ(here.size(), there.size()) << plan.name;
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_EQ(here[i].index, there[i].index) << plan.name;
  }
}

TEST(IterationTable, OtherNamesThatSayTheSameChangeNothing) {
  for (const JobPlan& plan : without_noise()) {
    const LaunchJob job = make_job(plan);
    const auto here = turns_of(job), there = turns_of(job, wrapped);
    ASSERT_EQ(here.size(), there.size()) << plan.name;
    for (std::size_t i = 0; i < here.size(); ++i) EXPECT_EQ(here[i].index, there[i].index) << plan.name;
  }
}

// Where no name says what updates the parameters, micro-batches could be taken for iterations.
TEST(IterationTable, NamesThatSayNothingMayLeaveItUndecidedButNotWrong) {
  for (JobPlan plan : without_noise()) {
    if (plan.graph) continue;  // a graph's launch is said to update parameters by the plan, not by its name
    plan.iterations = std::min<std::size_t>(plan.iterations, 60);
    const Judgement judged = judge(plan, number_of);
    EXPECT_NE(judged.answer, Answer::kWrong) << say(plan, judged);
  }
}

TEST(LaunchPattern, SaysTheSameOfTheSameLaunches) {
  const LaunchJob job = make_job(without_noise().front());
  const auto once = turns_of(job), again = turns_of(job);
  ASSERT_EQ(once.size(), again.size());
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].start, again[i].start);
}

TEST(LaunchPattern, TheIterationBeginsWithTheCopyOfItsBatch) {
  JobPlan plan;
  plan.launches = 400;
  const LaunchJob job = make_job(plan);
  const auto turns = turns_of(job);
  ASSERT_GT(turns.size(), 3u);
  for (std::size_t i = 1; i + 1 < turns.size(); ++i) {
    EXPECT_EQ(job.launches[turns[i].index].kind, Made::kToDevice);
    EXPECT_NE(job.launches[turns[i].index - 1].kind, Made::kToDevice);
    EXPECT_GT((turns[i].start - turns[i].after).ns, 800'000);
  }
}

}  // namespace
}  // namespace gpudiag::truth
