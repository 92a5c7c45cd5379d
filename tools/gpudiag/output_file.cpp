// SPDX-License-Identifier: Apache-2.0
#include "output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gpudiag::tool {

namespace fs = std::filesystem;

Result<OutputFile> OutputFile::open(const fs::path& path) {
  OutputFile output;
  output.path_ = path;
  if (path.empty()) {
    output.file_.reset(stdout);
    return output;
  }
  std::error_code ignored;
  // A device or a pipe (/dev/null, a FIFO) cannot be replaced by renaming.
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    output.file_.reset(std::fopen(path.c_str(), "wb"));
  } else {
    output.unfinished_ = path;
    output.unfinished_ += fmt::format(".{}.part", getpid());
    output.file_.reset(std::fopen(output.unfinished_.c_str(), "wb"));
  }
  if (!output.file_) {
    output.unfinished_.clear();
    return Error{fmt::format("cannot write {}: {}", path.string(), std::strerror(errno))};
  }
  return output;
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  if (file_ && !unfinished_.empty()) fs::remove(unfinished_, ignored);
}

void OutputFile::write(std::string_view text) {
  if (error_ == 0 && std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size())
    error_ = errno;
}

std::optional<Error> OutputFile::close() {
  if (error_ == 0 && std::fflush(file_.get()) != 0) error_ = errno;
  const std::string name = path_.empty() ? "stdout" : path_.string();
  if (error_ != 0) return Error{fmt::format("cannot write {}: {}", name, std::strerror(error_))};
  file_.reset();
  std::error_code failed;
  if (!unfinished_.empty()) fs::rename(unfinished_, path_, failed);
  if (failed) return Error{fmt::format("cannot write {}: {}", name, failed.message())};
  return std::nullopt;
}

}  // namespace gpudiag::tool
