// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// The ledger as one line of the job's log:
//
//   gpudiag rank 3 iter 1841  412.6 ms | compute 61.2% comm 8.4% copy 0.6% | idle 29.8%:
//   data_loading 24.1 (too_few_workers) sync 3.9 launch 1.2 host 0.4 unknown 0.2
//
// (in one line). docs/output.md says how to read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attribution/ledger_sum.hpp"

namespace gpudiag {

/// What one line covers: one iteration, or the iterations of one device since its last line.
/// Valid iterations are in `sum`; the others are counted by reason and are in no sum.
struct IterationRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t count = 0;    ///< iterations covered, whatever their state
  bool window = false;        ///< they are none: windows of a job that marks none, or what came before the first
  bool evaluation = false;    ///< they were no training; the numbers are those of the training that follows
  std::uint64_t partial = 0;
  std::uint64_t empty = 0;
  std::uint64_t invalid = 0;  ///< iterations, not defects
  std::array<std::uint64_t, kInvalidReasonNames.size()> reasons{};
  LedgerSum sum;

  void add(const IterationLedger& ledger);
};

/// Who the line speaks of.
struct LineHead {
  std::uint32_t rank = 0;
  DeviceId device{};
  bool show_device = false;  ///< the rank drives several
};

/// Without a line end. The printed shares add up to 100.0, those behind `idle` to idle's;
/// `unknown` is there whenever it is not zero. Several iterations: their mean time and their number.
std::string format_line(const LineHead& head, const IterationRange& range);
std::string format_line(const LineHead& head, const IterationLedger& ledger);

/// "412.6 ms"; under a millisecond in us, from ten seconds in s.
std::string format_time(DurationNs time);
/// Tenths of a percent as "61.2".
std::string format_tenths(std::int64_t tenths);
/// As the line names it: `launch` for launch_overhead, `comm_wait` for communication_wait.
std::string_view short_name(Cause cause);

}  // namespace gpudiag
