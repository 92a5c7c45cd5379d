// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: how a session's text leaves the process.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace gpudiag {

/// Which file a descriptor stands for. The job may close any number and get it again for a file of its
/// own; nothing of ours may reach that one.
class DescriptorIdentity {
 public:
  /// Of what `descriptor` is now; nothing equals that of a closed one.
  static DescriptorIdentity of(int descriptor);
  bool is(int descriptor) const;

 private:
  bool open_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Writes whole lines to stderr with one write() each, so that they do not mix with the job's, and
/// never kills or holds up the job: a closed pipe is a failure like any other, a pipe that nobody
/// empties costs the line, and a descriptor 2 that the job has meanwhile given to something else is
/// left alone. [any thread]
class StderrLine {
 public:
  /// Remembers what descriptor 2 is now.
  StderrLine() : stderr_{DescriptorIdentity::of(2)} {}
  /// Adds the line end.
  void write(std::string_view line) const;

 private:
  DescriptorIdentity stderr_;
};

/// Writes one "gpudiag …" line to stderr, whatever the log goes to: for what a user must know.
void complain(std::string_view text);

/// A file that is only ever appended to. Not thread-safe.
class AppendFile {
 public:
  AppendFile() = default;
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// False with errno set where it cannot be opened; `fresh` refuses an existing one (EEXIST). A pipe
  /// that nobody reads is refused (ENXIO), not waited for.
  bool open(const std::string& path, bool fresh);
  bool is_open() const { return descriptor_ >= 0; }
  /// All bytes or, from the first failure on, none: false. A descriptor that the job has closed is one.
  bool append(std::string_view bytes);
  bool good() const { return !failed_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  DescriptorIdentity identity_;
  bool failed_ = false;
};

/// `bytes` in as many write() calls as it takes; the signals of a closed pipe and of a file's size
/// limit (RLIMIT_FSIZE) are swallowed, and a pipe or terminal that takes nothing for 100 ms is a failure
/// (EAGAIN). False with errno on failure.
bool write_all(int descriptor, std::string_view bytes);

/// Makes `folder` and its parents; false with errno set.
bool make_folders(const std::string& folder);

}  // namespace gpudiag
