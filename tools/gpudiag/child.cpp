// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "exit_code.hpp"

namespace gpudiag::tool {
namespace {

// What is passed on. Stop signals are not: the terminal stops the job and us alike.
constexpr std::array kForwarded{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kForwarded) sigaddset(&set, number);
  sigaddset(&set, SIGCHLD);
  return set;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The job starts with the signal mask we were started with.
int spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
          const sigset_t& mask, pid_t& pid) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const auto arguments = pointers_to(command);
  const auto variables = pointers_to(environment);
  const int error = posix_spawnp(&pid, arguments[0], nullptr, &attributes, arguments.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  return error;
}

// A key at the terminal signals the whole foreground group, the job included.
bool reached_the_job(const siginfo_t& info) { return info.si_code == SI_KERNEL; }

JobEnd wait_for(pid_t pid, const sigset_t& watched) {
  while (true) {
    siginfo_t info{};
    const int number = sigwaitinfo(&watched, &info);
    if (number < 0) continue;
    if (number != SIGCHLD) {
      if (!reached_the_job(info)) kill(pid, number);
      continue;
    }
    JobEnd end;
    if (waitpid(pid, &end.wait_status, WNOHANG) == pid) return end;
  }
}

}  // namespace

bool JobEnd::by_signal() const { return WIFSIGNALED(wait_status); }
int JobEnd::signal() const { return WTERMSIG(wait_status); }
int JobEnd::exit_status() const { return WEXITSTATUS(wait_status); }

std::variant<JobEnd, StartError> run_job(const std::vector<std::string>& command,
                                         const std::vector<std::string>& environment) {
  const sigset_t watched = watched_signals();
  sigset_t before;
  // Blocked before the start, so that none is lost between the start and the wait.
  sigprocmask(SIG_BLOCK, &watched, &before);
  // A parent that ignores SIGCHLD would have the kernel throw the job's status away.
  signal(SIGCHLD, SIG_DFL);
  pid_t pid = 0;
  const int error = spawn(command, environment, before, pid);
  if (error != 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    const bool missing = error == ENOENT;
    return StartError{missing ? kCommandNotFound : kCannotExecute,
                      fmt::format("cannot start {}: {}", command.front(), std::strerror(error))};
  }
  // A reader of our summary that has gone away must not cost the job its status or its report.
  signal(SIGPIPE, SIG_IGN);
  return wait_for(pid, watched);
}

void end_like(const JobEnd& end) {
  std::fflush(nullptr);
  if (end.by_signal()) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(end.signal(), SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, end.signal());
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    kill(getpid(), end.signal());
    // Only a signal that does not end a process by default gets here.
    _exit(128 + end.signal());
  }
  std::exit(end.exit_status());
}

}  // namespace gpudiag::tool
