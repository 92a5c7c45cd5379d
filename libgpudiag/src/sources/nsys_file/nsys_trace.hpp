// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record -> timeline -> attribution -> report.
// The door of this folder: what Nsight Systems recorded, exported by `nsys export --type sqlite`, as
// records.
#pragma once

#include <filesystem>

#include "record/result.hpp"
#include "sources/recorded/recorded_trace.hpp"

namespace gpudiag {

/// Reads a whole export. Fails where it is no database, or none of Nsight Systems'; whatever else is
/// wrong with it is counted in quality(), and what it lacks is listed in info().unknown.
///
/// A file holds the processes of one machine, each a rank of the job where it has operations: those
/// come first, by the lowest of their devices.
Result<RecordedTrace> read_nsys(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace gpudiag
