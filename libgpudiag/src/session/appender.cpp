// SPDX-License-Identifier: Apache-2.0
#include "session/appender.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gpudiag {
namespace {

// A reader that is only slow has emptied a part of its pipe by then.
constexpr int kPatienceMs = 100;
// What a pipe takes at once wherever poll() calls it ready (PIPE_BUF).
constexpr std::size_t kPiece = 4096;

/// Blocks the signals of a failing write() for the calling thread and takes back those that our own
/// raised.
class WriteSignals {
 public:
  WriteSignals() {
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&ours_);
    sigset_t both;
    sigemptyset(&both);
    for (const int number : {SIGPIPE, SIGXFSZ}) {
      sigaddset(&both, number);
      if (sigismember(&pending, number) != 1) sigaddset(&ours_, number);
    }
    pthread_sigmask(SIG_BLOCK, &both, &before_);
  }
  ~WriteSignals() {
    const int error = errno;
    const timespec at_once{};
    while (sigtimedwait(&ours_, nullptr, &at_once) > 0 || errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WriteSignals(const WriteSignals&) = delete;
  WriteSignals& operator=(const WriteSignals&) = delete;

 private:
  sigset_t ours_;
  sigset_t before_;
};

/// False where it would be written to a reader that does not read. Files are always ready.
bool takes_more(int descriptor) {
  pollfd wanted{descriptor, POLLOUT, 0};
  int ready = 0;
  do ready = ::poll(&wanted, 1, kPatienceMs);
  while (ready < 0 && errno == EINTR);
  if (ready != 0) return true;  // also what has failed: write() says why
  errno = EAGAIN;
  return false;
}

}  // namespace

bool write_all(int descriptor, std::string_view bytes) {
  const WriteSignals guard;
  struct stat status {};
  const bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  while (!bytes.empty()) {
    if (!regular && !takes_more(descriptor)) return false;
    const ssize_t written = ::write(descriptor, bytes.data(), regular ? bytes.size() : std::min(bytes.size(), kPiece));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

DescriptorIdentity DescriptorIdentity::of(int descriptor) {
  DescriptorIdentity identity;
  struct stat status {};
  identity.open_ = fstat(descriptor, &status) == 0;
  identity.device_ = status.st_dev;
  identity.inode_ = status.st_ino;
  return identity;
}

bool DescriptorIdentity::is(int descriptor) const {
  struct stat status {};
  return open_ && fstat(descriptor, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

void StderrLine::write(std::string_view line) const {
  if (!stderr_.is(STDERR_FILENO)) return;
  std::string text{line};
  text += '\n';
  write_all(STDERR_FILENO, text);
}

void complain(std::string_view text) { StderrLine{}.write(std::string{"gpudiag "}.append(text)); }

AppendFile::~AppendFile() {
  if (descriptor_ >= 0 && identity_.is(descriptor_)) ::close(descriptor_);
}

bool AppendFile::open(const std::string& path, bool fresh) {
  // O_NONBLOCK: opening a named pipe waits for its reader otherwise, and the job with it.
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (fresh ? O_EXCL : 0);
  descriptor_ = ::open(path.c_str(), flags, 0644);
  path_ = path;
  failed_ = false;
  if (descriptor_ >= 0) identity_ = DescriptorIdentity::of(descriptor_);
  return descriptor_ >= 0;
}

bool AppendFile::append(std::string_view bytes) {
  if (descriptor_ < 0 || failed_) return false;
  failed_ = !identity_.is(descriptor_) || !write_all(descriptor_, bytes);
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
