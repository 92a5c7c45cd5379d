// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// What is missing, doubled, cut or odd about the ranks of a job, each in a sentence. Inside of the
// comparison of ranks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attribution/ranks/job_report.hpp"

namespace gpudiag {

std::vector<JobNote> notes_on(std::span<const RankSummary> ranks, const JobTable& table, const ClockFit& clocks);
/// A file that belongs to no job of two ranks. `again`: its rank has another file.
JobNote left_over(const RankSummary& summary, bool again);
/// Several jobs, or one that was begun anew: says so in the first report.
void note_generations(std::vector<JobReport>& reports);

/// "0-3, 7 and 9": rising numbers; of many the first and how many more.
std::string number_list(std::vector<std::uint32_t> numbers);

}  // namespace gpudiag
