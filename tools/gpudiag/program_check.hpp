// SPDX-License-Identifier: Apache-2.0
// Flow: [gpudiag run]: environment -> job -> report.
// Whether the simulated GPU can serve a program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace gpudiag::tool {

/// Where execvp() would find `command` with this PATH; empty where nowhere.
std::filesystem::path find_program(const std::string& command, const std::string& path_variable);

/// A 64-bit ELF program into which the CUDA runtime is linked statically: no library can stand in
/// for it. Scripts, interpreters and programs without CUDA are not.
bool has_static_cudart(const std::filesystem::path& program);

}  // namespace gpudiag::tool
