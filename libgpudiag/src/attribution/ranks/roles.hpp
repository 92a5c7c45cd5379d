// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Which ranks do the same work, and so may be compared: those of one pipeline stage, not those of two.
// Inside of the comparison of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/ranks/job_table.hpp"

namespace gpudiag {

struct Roles {
  std::vector<std::uint32_t> of;                    ///< by rank; kNowhere: communicates with nobody
  std::vector<std::vector<std::uint32_t>> members;  ///< ranks, rising
};

/// By the sequence of a rank's operations: kinds, sizes, sizes of groups. Two ranks that send to each
/// other do not have the same role even so: then their place in the pipeline, which ranks of it are
/// numbered along, tells them apart.
Roles find_roles(const JobTable& table, std::size_t ranks);

}  // namespace gpudiag
