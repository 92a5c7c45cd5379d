// SPDX-License-Identifier: Apache-2.0
// Flow: [gpudiag run]: environment -> job -> report.
// The job as a child process: as if the shell had started it.
#pragma once

#include <string>
#include <variant>
#include <vector>



namespace gpudiag::tool {

/// How the job ended, as waitpid() has it.
struct JobEnd {
  int wait_status = 0;

  bool by_signal() const;
  int signal() const;
  int exit_status() const;
};

/// A job that could not be started, with the status a shell would give.
struct StartError {
  int exit_status;
  std::string message;
};

/// Runs `command` with `environment` ("NAME=value") until it ends. Signals sent to this process are
/// passed on to it; those of the terminal reach it by themselves. Call once, from the only thread.
std::variant<JobEnd, StartError> run_job(const std::vector<std::string>& command,
                                         const std::vector<std::string>& environment);

/// Ends this process as the job ended: with its status, or by its signal. Writes no core of its own.
[[noreturn]] void end_like(const JobEnd& end);

}  // namespace gpudiag::tool
