// SPDX-License-Identifier: Apache-2.0
// Prints what the search for iterations makes of each job: `iteration_table [SEEDS [JOB]]`
// (docs/iterations.md).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "iterations/iteration_judge.hpp"

int main(int argc, char** argv) {
  using namespace gpudiag::truth;
  static const char* const kAnswers[] = {"right", "late", "undecided", "WRONG"};
  const std::uint64_t seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2;
  const char* only = argc > 2 ? argv[2] : "";
  std::size_t answers[4] = {};
  std::printf("%-36s %8s %6s %5s | %-9s %11s %9s %8s %8s\n", "job", "launches", "noise", "seed", "answer", "found after", "matched",
              "invented", "length");
  std::size_t count = 0;
  for (const JobPlan& plan : iteration_plans(seeds)) {
    if (std::strstr(plan.name.c_str(), only) == nullptr) continue;
    const Judgement judged = judge(plan);
    ++answers[static_cast<int>(judged.answer)];
    ++count;
    std::printf("%-36s %8zu %5.1f%% %5llu | %-9s %11s %4zu/%-4zu %8zu %8zu\n", plan.name.c_str(), plan.launches, 100 * plan.noise,
                static_cast<unsigned long long>(plan.seed), kAnswers[static_cast<int>(judged.answer)], 
                judged.found_after ? std::to_string(*judged.found_after).c_str() : "-", judged.matched, judged.expected, judged.invented, judged.length);
  }
  std::printf("%zu jobs: %zu right, %zu right but late, %zu undecided, %zu wrong\n", count, answers[0], answers[1], answers[2],
              answers[3]);
  return answers[3] == 0 ? 0 : 1;
}
