// SPDX-License-Identifier: Apache-2.0
// Ledgers as text that a person can read and a test can compare: integers only, nothing rounded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attribution/ledger.hpp"
#include "sources/kineto_file/kineto_trace.hpp"
#include "timeline/quality.hpp"

namespace gpudiag::golden {

/// What the engine says of one process of a trace.
struct ProcessLedgers {
  RecordedProcess process;
  std::vector<IterationLedger> ledgers;
  Quality quality;  ///< the engine's and the reader's together
};

/// Every process that has operations, each through an engine of its own; the main one in any case.
std::vector<ProcessLedgers> analyse(const RecordedTrace& trace);

/// A block for each iteration; of the causes only those that are not zero.
std::string to_text(const std::vector<ProcessLedgers>& processes);

/// Reads and analyses a file; the error's text where it cannot be read.
std::string golden_text(const std::filesystem::path& path);

}  // namespace gpudiag::golden
