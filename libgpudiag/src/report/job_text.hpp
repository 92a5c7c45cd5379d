// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// The comparison of ranks for people: who is late, by how much, why, and who waits; as short for
// thousands of ranks as for two.
#pragma once

#include <string>
#include <vector>

#include "attribution/ranks/job_report.hpp"

namespace gpudiag {

/// One text a paragraph, to be wrapped; the first is the heading.
std::vector<std::string> job_text(const JobReport& job);

}  // namespace gpudiag
