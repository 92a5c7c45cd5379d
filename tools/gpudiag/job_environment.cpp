// SPDX-License-Identifier: Apache-2.0
#include "job_environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace gpudiag::tool {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 2> kInjectionVariables{"CUDA_INJECTION64_PATH",
                                                              "NVTX_INJECTION64_PATH"};
constexpr std::string_view kInjectName = "libgpudiag_inject.so";

// Beside bin/: where the build put it, and where distributions put libraries.
std::vector<fs::path> library_folders() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path prefix = program.parent_path().parent_path();
  return {prefix / GPUDIAG_LIBDIR, prefix / "lib"};
}

void add_injection(const Installation& installation, const OptionSource& before, JobEnvironment& job) {
  for (const std::string_view name : kInjectionVariables) {
    const auto present = before(name);
    if (present && !present->empty() && *present != installation.inject.string()) {
      // The session takes NVTX's ranges from CUPTI then.
      if (name.starts_with("NVTX") && fs::path(*present).filename().string().starts_with("libcupti.so")) continue;
      job.messages.push_back(fmt::format("{}={} is set by something else and is kept: gpudiag sees nothing "
                                         "that comes by this way; unset it to change that",
                                         name, *present));
      if (name == kInjectionVariables[0]) job.hears_cuda = false;
      continue;
    }
    job.variables.emplace_back(name, installation.inject.string());
  }
}

// NCCL's profiler interface, on request.
void add_nccl(const Installation& installation, const GivenOptions& given, const OptionSource& before,
              JobEnvironment& job) {
  constexpr std::string_view kVariable = "NCCL_PROFILER_PLUGIN";
  const auto asked = given.find("GPUDIAG_NCCL");
  const std::string value = asked != given.end() ? asked->second : before("GPUDIAG_NCCL").value_or("");
  if (value != "on") return;
  const auto present = before(kVariable);
  if (present && !present->empty() && *present != installation.inject.string()) {
    job.messages.push_back(fmt::format("{}={} is set by something else and is kept: NCCL tells that plugin of its "
                                       "collectives and not gpudiag; unset it to change that",
                                       kVariable, *present));
    return;
  }
  job.variables.emplace_back(kVariable, installation.inject.string());
}

// In front of what stands in a variable that lists folders.
void add_folder(std::string_view name, const fs::path& folder, const OptionSource& before, JobEnvironment& job) {
  std::string path = folder.string();
  if (const auto present = before(name); present && !present->empty()) {
    if (*present == path || present->starts_with(path + ":")) path = *present;  // a run inside a run
    else path += ":" + *present;
  }
  job.variables.emplace_back(name, path);
}

}  // namespace

Result<Installation> find_installation() {
  std::string looked;
  for (const fs::path& folder : library_folders()) {
    std::error_code error;
    const fs::path inject = folder / kInjectName;
    if (fs::exists(inject, error)) {
      const fs::path simgpu = folder / "simgpu";
      const fs::path python = folder / "gpudiag/python/gpudiag/_inject";
      return Installation{inject, fs::is_directory(simgpu, error) ? simgpu : fs::path{},
                          fs::is_directory(python, error) ? python : fs::path{}};
    }
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", folder.string());
  }
  return Error{fmt::format("{} is not where it belongs (looked in {}): build or install gpudiag as a whole",
                           kInjectName, looked)};
}

JobEnvironment make_job_environment(const Installation& installation, const GivenOptions& given,
                                    bool simulate, const OptionSource& before) {
  JobEnvironment job;
  add_injection(installation, before, job);
  add_nccl(installation, given, before, job);
  if (simulate) add_folder("LD_LIBRARY_PATH", installation.simgpu, before, job);
  // Each Python of the job looks for `sitecustomize` there, which puts our hooks in when torch comes.
  if (!installation.python.empty()) add_folder("PYTHONPATH", installation.python, before, job);
  for (const auto& [name, value] : given) job.variables.emplace_back(name, value);
  return job;
}

std::vector<std::string> merged_environment(const JobEnvironment& job) {
  std::vector<std::string> merged;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text{*variable};
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [set, value] : job.variables) replaced = replaced || set == name;
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [name, value] : job.variables) merged.push_back(fmt::format("{}={}", name, value));
  return merged;
}

}  // namespace gpudiag::tool
