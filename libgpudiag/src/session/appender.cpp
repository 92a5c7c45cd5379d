// SPDX-License-Identifier: Apache-2.0
#include "session/appender.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace gpudiag {
namespace {

/// Blocks SIGPIPE for the calling thread and takes back one that our own write raised.
class PipeGuard {
 public:
  PipeGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeGuard() {
    const int error = errno;
    if (!was_pending_) {
      const timespec at_once{};
      while (sigtimedwait(&pipe_, nullptr, &at_once) == -1 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  PipeGuard(const PipeGuard&) = delete;
  PipeGuard& operator=(const PipeGuard&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace

bool write_all(int descriptor, std::string_view bytes) {
  const PipeGuard guard;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

StderrLine::StderrLine() {
  struct stat status {};
  open_ = fstat(STDERR_FILENO, &status) == 0;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

void StderrLine::write(std::string_view line) const {
  struct stat status {};
  if (!open_ || fstat(STDERR_FILENO, &status) != 0) return;
  if (status.st_dev != device_ || status.st_ino != inode_) return;
  std::string text{line};
  text += '\n';
  write_all(STDERR_FILENO, text);
}

void complain(std::string_view text) { StderrLine{}.write(std::string{"gpudiag "}.append(text)); }

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool AppendFile::open(const std::string& path, bool fresh) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (fresh ? O_EXCL : 0);
  descriptor_ = ::open(path.c_str(), flags, 0644);
  path_ = path;
  failed_ = false;
  return descriptor_ >= 0;
}

bool AppendFile::append(std::string_view bytes) {
  if (descriptor_ < 0 || failed_) return false;
  failed_ = !write_all(descriptor_, bytes);
  return !failed_;
}

bool make_folders(const std::string& folder) {
  for (std::size_t at = 1; at <= folder.size(); ++at) {
    if (at != folder.size() && folder[at] != '/') continue;
    if (mkdir(folder.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST) return false;
  }
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) return true;
  errno = ENOTDIR;
  return false;
}

}  // namespace gpudiag
