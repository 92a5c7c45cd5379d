// SPDX-License-Identifier: Apache-2.0
// Where traces are that other people recorded; they are no part of the project.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace gpudiag::golden {

/// GPUDIAG_TRACES, else the folder that the build was told of.
inline std::filesystem::path traces_folder() {
  const char* const set = std::getenv("GPUDIAG_TRACES");
  return set != nullptr && *set != '\0' ? set : GPUDIAG_TRACES_FOLDER;
}

/// For the message of a test that cannot run.
inline constexpr const char* kTraceSources =
    "not run: no such trace here. Put the traces into a folder and set GPUDIAG_TRACES to it; they "
    "come from pytorch/kineto (tb_plugin samples), facebookresearch/param 1e115ffc, "
    "facebookresearch/HolisticTraceAnalysis f4d0062c and AMD-AGI/TraceLens 171dd747";

}  // namespace gpudiag::golden
