// SPDX-License-Identifier: Apache-2.0
// gpudiag analyze: a report from what was recorded.
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "output_file.hpp"
#include "setting_options.hpp"

namespace gpudiag::tool {
namespace {

constexpr const char* kExamples = R"(
Examples:
  gpudiag analyze trace.json.gz                    one trace of torch.profiler
  gpudiag analyze report.sqlite                    what Nsight Systems recorded, exported by
                                                   nsys export --type sqlite report.nsys-rep
  gpudiag analyze traces/                          a folder of both, one rank a process
  gpudiag analyze gpudiag-run/ --steps             a live run, with a line for each iteration
  gpudiag analyze rank0.pid7.gpudiag --format json -o report.json
  gpudiag analyze trace.json --ranges 'fetch_.*=data_loading' --iteration 'train_step'

Exit status: 0 everything read; 1 nothing could be read or the report not be written; 2 wrong usage;
3 the report is complete but for inputs that could not be read.)";

struct AnalyzeArguments {
  std::vector<std::string> paths;
  std::string format = "text";
  std::string output;
  bool steps = false;
  std::vector<std::string> ranges;
  std::string iteration;
};

std::size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<std::size_t>(size.ws_col, 60, 120);
}

std::unique_ptr<Reporter> make_reporter(const AnalyzeArguments& arguments, Write write) {
  if (arguments.format == "json") return make_json_reporter(std::move(write));
  if (arguments.format == "jsonl") return make_json_lines_reporter(std::move(write));
  return make_text_reporter(std::move(write), {terminal_columns(), arguments.steps});
}

/// What `--ranges` and `--iteration` come to, by the rules of GPUDIAG_RANGES; what is wrong with them
/// is said. Nothing then.
std::optional<AnalysisOptions> read_rules(const AnalyzeArguments& arguments) {
  const GivenOptions given{{"GPUDIAG_RANGES", fmt::format("{}", fmt::join(arguments.ranges, ";"))},
                           {"GPUDIAG_ITERATION", arguments.iteration}};
  const auto complaints = complaints_about(given);
  for (const std::string& complaint : complaints) fmt::print(stderr, "gpudiag: {}\n", complaint);
  if (!complaints.empty()) return std::nullopt;
  std::vector<std::string> none;
  const Settings settings = read_settings(given, [](std::string_view) { return std::nullopt; }, none);
  return AnalysisOptions{settings.ranges, settings.iteration};
}

// `analyze ... | head`: quietly and by the signal, as whoever writes into a pipe ends. Reached where our
// parent had us ignore it.
[[noreturn]] void end_by_sigpipe() {
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
  _exit(128 + SIGPIPE);
}

int analyze(const AnalyzeArguments& arguments) {
  const auto rules = read_rules(arguments);
  if (!rules) return kUsage;
  const Inputs inputs = find_inputs({arguments.paths.begin(), arguments.paths.end()});
  std::size_t failures = inputs.problems.size();
  for (const std::string& problem : inputs.problems) fmt::print(stderr, "gpudiag: {}\n", problem);
  if (inputs.files.empty()) return kNothingRead;

  Result<OutputFile> output = OutputFile::open(arguments.output);
  if (!output) {
    fmt::print(stderr, "gpudiag: {}\n", output.error().message);
    return kNothingRead;
  }
  Progress progress{inputs.files.size()};
  const auto reporter = make_reporter(arguments, [&](std::string_view text) { output->write(text); });
  Analysis analysis{{reporter.get()}, *rules, progress};
  for (const InputFile& file : inputs.files) {
    if (output->reader_has_gone()) break;
    if (const auto error = analysis.add(file)) {
      ++failures;
      fmt::print(stderr, "gpudiag: {}: {}\n", file.path.string(), error->message);
    }
  }
  if (analysis.ranks() == 0) return kNothingRead;
  analysis.end();
  if (const auto error = output->close()) {
    if (output->reader_has_gone()) end_by_sigpipe();
    fmt::print(stderr, "gpudiag: {}\n", error->message);
    return kNothingRead;
  }
  return failures == 0 ? kSuccess : kPartlyRead;
}

}  // namespace

void add_analyze_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<AnalyzeArguments>();
  CLI::App* command = app.add_subcommand(
      "analyze", "Report on traces of torch.profiler and Nsight Systems, recordings and live runs, or folders of them");
  command->add_option("PATH", arguments->paths, "Files and folders")->required();
  command->add_option("--format,-f", arguments->format,
                      "text for people, json (gpudiag.report/1), jsonl (gpudiag.iteration/1)")
      ->check(CLI::IsMember({"text", "json", "jsonl"}))
      ->capture_default_str();
  command->add_option("--output,-o", arguments->output, "File to write instead of stdout");
  command->add_flag("--steps", arguments->steps, "In text: a line for each iteration, too");
  command->add_option("--ranges", arguments->ranges,
                      "REGEX=CAUSE[:SUB_CAUSE]: what a range's name means; may be given again")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--iteration", arguments->iteration,
                      "REGEX: ranges whose names match are iterations");
  command->footer(kExamples);
  command->callback([arguments, &action] { action = [arguments] { return analyze(*arguments); }; });
}

}  // namespace gpudiag::tool
