// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: where a report is written to.
#pragma once

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "record/result.hpp"

namespace gpudiag::tool {

/// A file that appears under its name only once it is complete, or stdout.
class OutputFile {
 public:
  /// Empty: stdout.
  static Result<OutputFile> open(const std::filesystem::path& path);
  OutputFile(OutputFile&&) noexcept = default;
  OutputFile& operator=(OutputFile&&) noexcept = default;
  /// Removes what was not closed.
  ~OutputFile();

  void write(std::string_view text);
  /// Nobody reads stdout any more, so there is nothing to write for.
  bool reader_has_gone() const { return path_.empty() && error_ == EPIPE; }
  /// Says what failed, now or at an earlier write.
  std::optional<Error> close();

 private:
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdout) std::fclose(file);
    }
  };
  OutputFile() = default;

  std::unique_ptr<std::FILE, Close> file_;
  std::filesystem::path path_;
  std::filesystem::path unfinished_;
  int error_ = 0;
};

}  // namespace gpudiag::tool
