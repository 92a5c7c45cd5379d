// SPDX-License-Identifier: Apache-2.0
// gpudiag: where every nanosecond of a training iteration goes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "commands.hpp"
#include "exit_code.hpp"

namespace {

using namespace gpudiag::tool;

constexpr const char* kExamples = R"(
Examples:
  gpudiag run -- ./trainer --epochs 3              the ledger in the job's own log, a report at the end
  gpudiag run -- torchrun --nproc-per-node 8 train.py
  gpudiag run --simulate -- ./trainer              on the simulated GPU
  gpudiag analyze trace.json.gz                    what torch.profiler recorded
  gpudiag env --format k8s                         for jobs that something else starts

`gpudiag COMMAND --help` says more.)";

// The parser's own words for it are that an argument was not expected.
bool is_no_command(const CLI::App& app, const char* word) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return word[0] != '-' && std::none_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
           return command->get_name() == word;
         });
}

// The option that the chosen command does not have; the parser may say first what is missing besides.
std::string unknown_option(const CLI::App& command, int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string_view word{argv[i]};
    if (word == "--") break;
    const std::string_view name = word.substr(0, word.find('='));
    if (name.starts_with("--") && command.get_option_no_throw(std::string{name}) == nullptr) return std::string{name};
  }
  return {};
}

std::string say_wrong_usage(const CLI::App* app, const CLI::Error& error) {
  const auto chosen = app->get_subcommands();
  return fmt::format("gpudiag: {}; `gpudiag {}--help` says more\n", error.what(),
                     chosen.empty() ? "" : chosen.front()->get_name() + " ");
}

int run(int argc, char** argv) {
  CLI::App app{"Says for every training iteration where the time went and why the GPU was idle.",
               "gpudiag"};
  app.set_version_flag("--version", fmt::format("gpudiag {}", GPUDIAG_VERSION));
  app.require_subcommand(1);
  app.footer(kExamples);
  Action action;
  add_run_command(app, action);
  add_analyze_command(app, action);
  add_env_command(app, action);
  app.failure_message(say_wrong_usage);
  if (argc > 1 && is_no_command(app, argv[1])) {
    fmt::print(stderr, "gpudiag: there is no command '{}'; there are run, analyze and env\n", argv[1]);
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string unknown =
        error.get_exit_code() == 0 || chosen.empty() ? "" : unknown_option(*chosen.front(), argc, argv);
    if (!unknown.empty()) {
      fmt::print(stderr, "gpudiag: there is no option {0} of `gpudiag {1}`; `gpudiag {1} --help` says more\n", unknown,
                 chosen.front()->get_name());
      return kUsage;
    }
    return app.exit(error) == 0 ? kSuccess : kUsage;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpudiag: %s\n", error.what());  // must not throw
    return kNothingRead;
  }
}
