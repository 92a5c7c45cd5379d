// SPDX-License-Identifier: Apache-2.0
// gpudiag env: the variables that bring gpudiag into a job which something else starts.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "commands.hpp"
#include "exit_code.hpp"
#include "report/json_writer.hpp"
#include "setting_options.hpp"

namespace gpudiag::tool {
namespace {

constexpr const char* kExamples = R"~(
Examples:
  eval "$(gpudiag env --dir "$PWD/ledger")"        in a batch script, before srun or mpirun
  docker run $(gpudiag env --format docker --dir /data/ledger) ...
                                                   libraries and folder are mounted into the container
  gpudiag env --format k8s                         to paste into a container's description)~";

struct EnvArguments {
  std::string format = "sh";
  bool simulate = false;
  GivenOptions given;
};

// Within single quotes a shell leaves everything alone but a single quote. Plain words go without:
// what $(…) inserts is not looked through for quotes.
std::string quoted_for_shell(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

void print_sh(const JobEnvironment& job) {
  for (const auto& [name, value] : job.variables) fmt::print("export {}={}\n", name, quoted_for_shell(value));
}

/// What a container must see under the same name as the host: the libraries, and where it writes to.
struct Mounts {
  std::string libraries;
  std::string ledger;  ///< empty: no folder is written to
};

Mounts mounts_of(const JobEnvironment& job, const Installation& installation) {
  Mounts mounts{installation.inject.parent_path().string(), {}};
  for (const auto& [name, value] : job.variables)
    if (name == "GPUDIAG_DIR") mounts.ledger = value;
  return mounts;
}

void print_docker(const JobEnvironment& job, const Mounts& mounts) {
  fmt::print("--volume {}\n", quoted_for_shell(mounts.libraries + ":" + mounts.libraries + ":ro"));
  if (!mounts.ledger.empty())
    fmt::print("--volume {}\n", quoted_for_shell(mounts.ledger + ":" + mounts.ledger));
  for (const auto& [name, value] : job.variables) fmt::print("--env {}\n", quoted_for_shell(name + "=" + value));
}

std::string quoted_for_yaml(std::string_view text) {
  std::string quoted;  // JSON's strings are YAML's double-quoted ones
  append_json_string(quoted, text);
  return quoted;
}

void print_k8s(const JobEnvironment& job, const Mounts& mounts) {
  const std::string libraries = quoted_for_yaml(mounts.libraries);
  const std::string ledger = quoted_for_yaml(mounts.ledger);
  fmt::print("# of the container\nenv:\n");
  for (const auto& [name, value] : job.variables) fmt::print("- name: {}\n  value: {}\n", name, quoted_for_yaml(value));
  fmt::print("volumeMounts:\n- name: gpudiag-libraries\n  mountPath: {}\n  readOnly: true\n", libraries);
  if (!mounts.ledger.empty()) fmt::print("- name: gpudiag-ledger\n  mountPath: {}\n", ledger);
  fmt::print("# of the pod; any other kind of volume will do\nvolumes:\n"
             "- name: gpudiag-libraries\n  hostPath:\n    path: {}\n    type: Directory\n",
             libraries);
  if (!mounts.ledger.empty())
    fmt::print("- name: gpudiag-ledger\n  hostPath:\n    path: {}\n    type: DirectoryOrCreate\n", ledger);
}

int print_environment(EnvArguments arguments) {
  for (const std::string& complaint : complaints_about(arguments.given)) {
    fmt::print(stderr, "gpudiag: {}\n", complaint);
    return kUsage;
  }
  const Result<Installation> installation = find_installation();
  if (!installation) {
    fmt::print(stderr, "gpudiag: {}\n", installation.error().message);
    return kNothingRead;
  }
  if (arguments.simulate && installation->simgpu.empty()) {
    fmt::print(stderr, "gpudiag: the simulated GPU is not part of this installation\n");
    return kNothingRead;
  }
  // A relative folder would be looked for in the container's working directory, and cannot be mounted.
  if (const auto dir = arguments.given.find("GPUDIAG_DIR"); dir != arguments.given.end() && arguments.format != "sh")
    dir->second = std::filesystem::absolute(dir->second).lexically_normal().string();
  const JobEnvironment job =
      make_job_environment(*installation, arguments.given, arguments.simulate, environment_variable);
  for (const std::string& message : job.messages) fmt::print(stderr, "gpudiag: {}\n", message);
  if (arguments.format == "docker") {
    print_docker(job, mounts_of(job, *installation));
  } else if (arguments.format == "k8s") {
    print_k8s(job, mounts_of(job, *installation));
  } else {
    print_sh(job);
  }
  return kSuccess;
}

}  // namespace

void add_env_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<EnvArguments>();
  CLI::App* command = app.add_subcommand("env", "Print what to export for a batch script, a container or a pod");
  command->add_option("--format,-f", arguments->format, "sh, docker or k8s")
      ->check(CLI::IsMember({"sh", "docker", "k8s"}))
      ->capture_default_str();
  command->add_flag("--simulate", arguments->simulate, "For the simulated GPU");
  add_setting_options(*command, arguments->given);
  command->footer(kExamples);
  command->callback([arguments, &action] { action = [arguments] { return print_environment(*arguments); }; });
}

}  // namespace gpudiag::tool
