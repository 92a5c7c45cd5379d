// SPDX-License-Identifier: Apache-2.0
// The comparison of ranks judged by jobs whose fault is known.
#pragma once

#include <string>

#include "attribution/ranks/job_report.hpp"
#include "ranks/model.hpp"

namespace ranks_model {

struct Verdict {
  bool rank_right = false;   ///< the ranks that were made slow are named, and no others
  bool kind_right = false;   ///< and so is what is wrong with them, and how often
  bool false_alarm = false;  ///< somebody is named in a healthy job
  std::string said;          ///< for people
};

Verdict judge(const Job& job, Fault fault, const gpudiag::JobReport& report);

}  // namespace ranks_model
