// SPDX-License-Identifier: Apache-2.0
// The subcommands of gpudiag. Each adds itself to the command line; the chosen one's action is then
// in `action` and gives the exit status.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace gpudiag::tool {

using Action = std::function<int()>;

void add_analyze_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_env_command(CLI::App& app, Action& action);

}  // namespace gpudiag::tool
