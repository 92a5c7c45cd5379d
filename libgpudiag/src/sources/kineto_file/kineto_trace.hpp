// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record -> timeline -> attribution -> report.
// The door of this folder: a trace that torch.profiler (Kineto) wrote, as records.
#pragma once

#include <filesystem>

#include "record/result.hpp"
#include "sources/recorded/recorded_trace.hpp"

namespace gpudiag {

/// Reads a whole file, plain or gzip, with one thread more than the caller's. Fails where it cannot
/// be opened or is no trace at all; whatever else is wrong with it is counted in quality().
///
/// A file is one rank: operations on its devices belong to its main process, the one with most CUDA
/// calls; others (workers of a loader, in files merged afterwards) have host records only. Where
/// several processes call CUDA (files of several ranks merged), an operation goes to the process that
/// launched on its device, as far as unambiguous correlation ids tell.
Result<RecordedTrace> read_kineto(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace gpudiag
