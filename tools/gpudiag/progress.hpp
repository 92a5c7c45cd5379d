// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: how far a long analysis is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpudiag::tool {

/// One line on stderr that is written over and over, and nothing at all where stderr is no terminal.
class Progress {
 public:
  /// `files`: how many there will be.
  explicit Progress(std::size_t files);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin_file(std::string_view name);
  void at(std::uint64_t read, std::uint64_t total);
  /// Wipes the line, so that what is printed next stands on its own.
  void clear();

 private:
  bool shown_;
  std::size_t files_;
  std::size_t file_ = 0;
  std::string name_;
  int last_percent_ = -1;
};

}  // namespace gpudiag::tool
