// SPDX-License-Identifier: Apache-2.0
// Flow: [gpudiag run]: environment -> job -> report.
// The settings of session/options.hpp as options of `run` and `env`.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "job_environment.hpp"

namespace gpudiag::tool {

/// Adds an option for each setting: GPUDIAG_LOG becomes --log. `given` must outlive the parsing.
void add_setting_options(CLI::App& command, GivenOptions& given);

/// What is wrong with the values in `given`, one sentence each.
std::vector<std::string> complaints_about(const GivenOptions& given);

}  // namespace gpudiag::tool
