// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// Shares of wall time as people read them: tenths of a percent that add up to 100.0 as printed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attribution/ledger_sum.hpp"

namespace gpudiag {

/// Divides `total` units among `parts` in proportion, each rounded up or down so that they add up to
/// `total` exactly: the largest remainders are rounded up, the earlier part first among equals.
/// Parts must not be negative; all zero gives all zero.
std::vector<std::int64_t> round_to_total(std::span<const std::int64_t> parts, std::int64_t total);

/// Tenths of a percent of wall. compute + communication + copy + idle = 1000 and idle = the sum of
/// idle_by_cause, unless wall is 0: then all are 0.
struct Shares {
  std::int64_t compute = 0;
  std::int64_t communication = 0;
  std::int64_t copy = 0;
  std::int64_t idle = 0;
  std::array<std::int64_t, kCauseCount> idle_by_cause{};
};

Shares shares_of(const LedgerSum& sum);

}  // namespace gpudiag
