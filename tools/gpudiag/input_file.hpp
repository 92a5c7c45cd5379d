// SPDX-License-Identifier: Apache-2.0
// Flow: [gpudiag analyze]: paths -> files -> ranks -> report.
// What the user's paths hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "record/result.hpp"

namespace gpudiag::tool {

enum class InputKind : std::uint8_t {
  kKinetoTrace,  ///< torch.profiler's JSON, plain or gzip
  kNsysExport,   ///< a database that nsys export wrote
  kRecording,    ///< gpudiag.records/1
  kSummary,      ///< gpudiag.ranks/1, where its run's lines are missing
  kRunLines,     ///< gpudiag.session/1 and gpudiag.iteration/1, as a live run writes them
};

struct InputFile {
  InputKind kind{};
  std::filesystem::path path;
};

/// By the file's first bytes, not by its name. The error says what was found instead.
Result<InputKind> kind_of(const std::filesystem::path& path);

struct Inputs {
  std::vector<InputFile> files;       ///< ranks by the numbers in their names
  std::vector<std::string> problems;  ///< one sentence for each path that holds nothing to read
};

/// Files as they are; of folders the traces, run files and recordings directly in them. A recording
/// beside the lines of the same run is left out: both say the same.
Inputs find_inputs(const std::vector<std::filesystem::path>& paths);

/// The number behind `rank` in the file's name ("rank12.json.gz", "trace_rank-3.json").
std::optional<std::uint32_t> rank_in_name(const std::filesystem::path& path);

}  // namespace gpudiag::tool
