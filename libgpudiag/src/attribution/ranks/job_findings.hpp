// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Culprits as findings, so that they stand among the others by what they cost, with the rank's name.
#pragma once

#include "attribution/findings.hpp"
#include "attribution/ranks/job_report.hpp"

namespace gpudiag {

/// Puts the job's culprits among `diagnosis`'s findings and sets the verdict anew where one of them
/// costs most. A finding of the same cause on the job or on the same rank gives way.
void add_culprits(Diagnosis& diagnosis, const JobReport& job);

/// "rank 3", "ranks 3, 7 and 12", "host node4 (ranks 32-39)", "the network of all ranks".
std::string who_of(const Culprit& culprit);
/// "persistent", "every 4th iteration", "in turns": how often.
std::string how_often(const Culprit& culprit);
/// "compute", "data_loading (too_few_workers)", …
std::string why_of(const Culprit& culprit);

}  // namespace gpudiag
