// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: how a session's text leaves the process.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace gpudiag {

/// Writes whole lines to stderr with one write() each, so that they do not mix with the job's, and
/// never kills the job: a closed pipe is a failure like any other, and a descriptor 2 that the job
/// has meanwhile given to something else is left alone. [any thread]
class StderrLine {
 public:
  /// Remembers what descriptor 2 is now.
  StderrLine();
  /// Adds the line end.
  void write(std::string_view line) const;

 private:
  bool open_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
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

  /// False with errno set where it cannot be opened; `fresh` refuses an existing one (EEXIST).
  bool open(const std::string& path, bool fresh);
  bool is_open() const { return descriptor_ >= 0; }
  /// All bytes or, from the first failure on, none: false.
  bool append(std::string_view bytes);
  bool good() const { return !failed_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  bool failed_ = false;
};

/// `bytes` in as many write() calls as it takes, a SIGPIPE swallowed. False with errno on failure.
bool write_all(int descriptor, std::string_view bytes);

/// Makes `folder` and its parents; false with errno set.
bool make_folders(const std::string& folder);

}  // namespace gpudiag
