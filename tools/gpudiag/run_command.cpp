// SPDX-License-Identifier: Apache-2.0
// gpudiag run: a job with gpudiag in it, and the report at its end.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "analysis.hpp"
#include "child.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "output_file.hpp"
#include "program_check.hpp"
#include "setting_options.hpp"

namespace gpudiag::tool {

namespace fs = std::filesystem;

namespace {

constexpr const char* kExamples = R"(
Examples:
  gpudiag run -- ./trainer --epochs 3
  gpudiag run --dir ledger --record -- torchrun --nproc-per-node 8 train.py
  gpudiag run --log every -- python train.py
  gpudiag run --simulate -- ./trainer              no GPU needed; the program needs a shared cudart

Every setting is an environment variable too, and the option goes before it. The exit status is the
job's; 125 where gpudiag could not start it, 126 and 127 where it cannot be executed or found.)";

struct RunArguments {
  bool simulate = false;
  GivenOptions given;
  std::vector<std::string> command;
};

// Not fmt::print(), which throws where nobody reads stderr any more.
void say(std::string_view text) {
  const std::string line = fmt::format("gpudiag {}\n", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// Every line of ours in the job's stderr begins so that it can be told from the job's own.
class PrefixedLines {
 public:
  void operator()(std::string_view text) {
    for (const char c : text) {
      if (at_line_start_) std::fputs("gpudiag ", stderr);
      std::fputc(c, stderr);
      at_line_start_ = c == '\n';
    }
  }

 private:
  bool at_line_start_ = true;
};

// A report for a file and one for people out of one reading.
class BothReporters {
 public:
  BothReporters(OutputFile& file)
      : json_{make_json_reporter([&](std::string_view text) { file.write(text); })},
        text_{make_text_reporter(PrefixedLines{}, TextOptions{92, false})} {}

  std::vector<Reporter*> all() { return {json_.get(), text_.get()}; }

 private:
  std::unique_ptr<Reporter> json_;
  std::unique_ptr<Reporter> text_;
};

// Where the processes of the job write to.
class RunFolder {
 public:
  static Result<RunFolder> make(const GivenOptions& given) {
    RunFolder folder;
    const auto option = given.find("GPUDIAG_DIR");
    const auto variable = environment_variable("GPUDIAG_DIR").value_or("");
    const std::string path = option != given.end() ? option->second : variable;
    if (!path.empty()) {
      // Absolute, since the job may change its folder before CUDA starts.
      if (!folder.open(fs::absolute(path)))
        return Error{fmt::format("cannot write into {}: choose another folder with --dir", folder.path_.string())};
      return folder;
    }
    // Nobody asked for a folder, so that the job must not fail for want of one.
    const auto name = fmt::format("gpudiag-{:%Y%m%d-%H%M%S}-{}", fmt::localtime(std::time(nullptr)), getpid());
    std::error_code no_current;
    const fs::path here = fs::current_path(no_current);
    if (!no_current && folder.open(here / name)) return folder;
    std::error_code no_temporary;
    const fs::path temporary = fs::temp_directory_path(no_temporary);
    if (no_temporary || !folder.open(temporary / name))
      return Error{fmt::format("cannot write into {}: choose another folder with --dir", here.string())};
    say(fmt::format("run: cannot write into {}: the ledger goes into {}", here.string(), folder.path_.string()));
    return folder;
  }

  const fs::path& path() const { return path_; }

  /// The files of this run, not those that lay there before.
  std::vector<fs::path> new_files() const {
    std::vector<fs::path> files;
    for (const fs::path& path : list())
      if (before_.count(path) == 0) files.push_back(path);
    return files;
  }

  fs::path report_path() const {
    const fs::path plain = path_ / "report.json";
    std::error_code error;
    return fs::exists(plain, error) ? path_ / fmt::format("report-{}.json", getpid()) : plain;
  }

  /// Nobody wrote anything: leave no empty folder behind.
  void remove_if_unused() const {
    std::error_code ignored;
    if (created_) fs::remove(path_, ignored);  // only an empty one
  }

 private:
  bool open(const fs::path& path) {
    path_ = path;
    std::error_code error;
    created_ = fs::create_directories(path_, error);
    if (error || access(path_.c_str(), W_OK) != 0) return false;
    before_ = list();
    return true;
  }

  std::set<fs::path> list() const {
    std::set<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator{path_, error})
      if (entry.path().extension() == ".jsonl") files.insert(entry.path());
    return files;
  }

  fs::path path_;
  bool created_ = false;
  std::set<fs::path> before_;
};

// The process behind "rank0.pid4711.jsonl".
pid_t writer_of(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::size_t at = name.find(".pid");
  return at == std::string::npos ? 0 : static_cast<pid_t>(std::atol(name.c_str() + at + 4));
}

// Whether the session closed the file: its process may live on for other reasons.
bool is_finished(const fs::path& file) {
  std::ifstream in{file, std::ios::binary | std::ios::ate};
  constexpr std::streamoff kLastLine = 4096;
  const std::streamoff size = in.tellg();
  if (size < 0) return false;
  std::string tail(static_cast<std::size_t>(std::min(size, kLastLine)), '\0');
  in.seekg(-static_cast<std::streamoff>(tail.size()), std::ios::end);
  in.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  return tail.find(R"("schema":"gpudiag.session/1","event":"end")") != std::string::npos;
}

// A launcher may end before its last worker has written its last line. A process that merely lives
// on (a logging service) must not hold the user's shell, hence the limit.
void wait_for_writers(const RunFolder& folder) {
  constexpr auto kPatience = std::chrono::seconds(5);
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < give_up) {
    const auto files = folder.new_files();
    const bool writing = std::any_of(files.begin(), files.end(), [](const fs::path& file) {
      const pid_t pid = writer_of(file);
      return pid > 0 && kill(pid, 0) == 0 && !is_finished(file);
    });
    if (!writing) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Nothing was written: because of what the user set, or because there was nothing to write.
std::string_view why_nothing(const GivenOptions& given, const JobEnvironment& job) {
  std::vector<std::string> said_before;
  if (!read_settings(given, environment_variable, said_before).enabled)
    return "run: nothing was recorded, since gpudiag is switched off (GPUDIAG_ENABLED)";
  if (!job.hears_cuda)
    return "run: nothing was recorded, since another tool has the driver's injection (CUDA_INJECTION64_PATH): "
           "run the job without that tool, or analyse what it wrote";
  return "run: no process of the job used CUDA, so there is no ledger";
}

void report(const RunFolder& folder, std::string_view nothing) {
  wait_for_writers(folder);
  const std::vector<fs::path> files = folder.new_files();
  if (files.empty()) {
    say(nothing);
    folder.remove_if_unused();
    return;
  }
  const fs::path path = folder.report_path();
  Result<OutputFile> output = OutputFile::open(path);
  if (!output) {
    say(fmt::format("run: {}; `gpudiag analyze {}` makes the report", output.error().message, folder.path().string()));
    return;
  }
  BothReporters reporters{*output};
  Progress progress{files.size()};
  Analysis analysis{reporters.all(), {}, progress};
  const Inputs inputs = find_inputs(files);
  for (const std::string& problem : inputs.problems) say("run: " + problem);
  for (const InputFile& file : inputs.files)
    if (const auto error = analysis.add(file)) say(fmt::format("run: {}: {}", file.path.string(), error->message));
  analysis.end();
  if (const auto error = output->close()) {
    say("run: " + error->message);
    return;
  }
  say(fmt::format("report: {}", path.string()));
}

// Whatever goes wrong with the report, the job's status is what counts.
void try_to_report(const RunFolder& folder, std::string_view nothing) {
  try {
    report(folder, nothing);
  } catch (const std::exception& error) {
    say(fmt::format("run: no report: {}", error.what()));
  }
}

std::optional<std::string> why_not_simulated(const RunArguments& arguments, const Installation& installation) {
  if (installation.simgpu.empty()) return "the simulated GPU is not part of this installation";
  const fs::path program =
      find_program(arguments.command.front(), environment_variable("PATH").value_or("/usr/bin:/bin"));
  if (!has_static_cudart(program)) return std::nullopt;
  return fmt::format("{} has the CUDA runtime linked statically, where the simulated GPU cannot stand in: build "
                     "it with `nvcc -cudart shared`",
                     program.string());
}

int refuse(int status, std::string_view why) {
  say(fmt::format("run: {}", why));
  return status;
}

int run(RunArguments arguments) {
  if (arguments.command.empty()) return refuse(kUsage, "no command given: gpudiag run -- COMMAND ARGUMENTS");
  // The folder is always there for `run`, so recording alone is no fault.
  GivenOptions checked = arguments.given;
  checked.emplace("GPUDIAG_DIR", ".");
  for (const std::string& complaint : complaints_about(checked)) return refuse(kUsage, complaint);

  const Result<Installation> installation = find_installation();
  if (!installation) return refuse(kRunFailed, installation.error().message);
  if (arguments.simulate)
    if (const auto why = why_not_simulated(arguments, *installation)) return refuse(kRunFailed, *why);
  const Result<RunFolder> folder = RunFolder::make(arguments.given);
  if (!folder) return refuse(kRunFailed, folder.error().message);
  arguments.given["GPUDIAG_DIR"] = folder->path().string();

  const JobEnvironment job =
      make_job_environment(*installation, arguments.given, arguments.simulate, environment_variable);
  for (const std::string& message : job.messages) say("run: " + message);
  const auto end = run_job(arguments.command, merged_environment(job));
  if (const auto* error = std::get_if<StartError>(&end)) {
    folder->remove_if_unused();
    return refuse(error->exit_status, error->message);
  }
  try_to_report(*folder, why_nothing(arguments.given, job));
  end_like(std::get<JobEnd>(end));
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a job with gpudiag in it, and report at its end");
  command->add_flag("--simulate", arguments->simulate, "On the simulated GPU");
  add_setting_options(*command, arguments->given);
  command->add_option("COMMAND", arguments->command, "The job, after --")->required();
  command->positionals_at_end();
  command->footer(kExamples);
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace gpudiag::tool
