// SPDX-License-Identifier: Apache-2.0
// Flow: [gpudiag run]: environment -> job -> report.
// What must stand in a job's environment for gpudiag to be in it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/result.hpp"
#include "session/options.hpp"

namespace gpudiag::tool {

/// Where the parts of gpudiag lie, found from this program's own place; the build tree has the layout
/// of an installation.
struct Installation {
  std::filesystem::path inject;  ///< libgpudiag_inject.so
  std::filesystem::path simgpu;  ///< folder of the simulated GPU; empty where it is not installed
  std::filesystem::path python;  ///< goes into PYTHONPATH; empty where the package is not installed
};
Result<Installation> find_installation();

/// GPUDIAG_ settings of the command line, by variable name.
using GivenOptions = std::map<std::string, std::string, std::less<>>;

struct JobEnvironment {
  std::vector<std::pair<std::string, std::string>> variables;  ///< to be set, in this order
  std::vector<std::string> messages;  ///< what the user should know: a value of theirs was kept
  bool hears_cuda = true;             ///< false: the driver loads another tool's library and not ours
};

/// `before` is the environment that the variables will be added to; values of the user's own tools in
/// it are kept.
JobEnvironment make_job_environment(const Installation& installation, const GivenOptions& given,
                                    bool simulate, const OptionSource& before);

/// This process's environment with the variables set, as "NAME=value".
std::vector<std::string> merged_environment(const JobEnvironment& job);

}  // namespace gpudiag::tool
