// SPDX-License-Identifier: Apache-2.0
// Flow: launch jobs -> detector under test; [judge] compares.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iterations/launch_job.hpp"
#include "timeline/launch_pattern.hpp"

namespace gpudiag::truth {

/// The plans of the table: what jobs are like, times their lengths, times noise and its `seeds`.
std::vector<JobPlan> iteration_plans(std::uint64_t seeds = 2);

enum class Answer : std::uint8_t {
  kRight,
  kLate,       ///< what was found is right, but it took longer or some iterations are missing
  kUndecided,
  kWrong,      ///< iterations were found that are none
};

struct Judgement {
  Answer answer = Answer::kUndecided;
  std::optional<std::size_t> found_after;  ///< whole iterations; none: never, or at the end of the job only
  std::size_t expected = 0;     ///< true iterations that a detector can know: all but the last
  std::size_t missed = 0;       ///< of the others, those before the first turn that was found
  std::size_t matched = 0;      ///< of them, those that were found with both ends
  std::size_t invented = 0;     ///< found iterations that match no true one
  std::size_t length = 0;       ///< of the cycle that was found, launches
};

/// Names of the launches go through `rename`, so that properties can be tried.
using Rename = std::string (*)(const std::string&);
Judgement judge(const JobPlan& plan, Rename rename = nullptr, std::int64_t shift_ns = 0);

/// Iterations within which the cycle has to be known.
std::size_t allowed_iterations(const JobPlan& plan);

/// The turns that the detector finds.
std::vector<Turn> turns_of(const LaunchJob& job, Rename rename = nullptr, std::int64_t shift_ns = 0);

}  // namespace gpudiag::truth
