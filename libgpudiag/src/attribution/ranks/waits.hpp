// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Exposed communication divided: waiting for the last to arrive, and the transfer itself. Inside of the
// comparison of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attribution/ranks/job_table.hpp"

namespace gpudiag {

/// Of one rank in one iteration. straggler_wait + transfer = the ledger's communication.
struct RankWait {
  DurationNs straggler_wait;
  DurationNs transfer;
  DurationNs unmatched;  ///< of `transfer`, operations whose counterparts nobody has seen
};

/// [rank * iterations + iteration]; nothing where the rank has no such iteration or no collective of it
/// was matched. `table` is aligned.
std::vector<std::optional<RankWait>> divide_communication(const JobTable& table, std::size_t ranks);

}  // namespace gpudiag
