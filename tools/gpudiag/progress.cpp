// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace gpudiag::tool {
namespace {

constexpr int kCells = 30;
constexpr std::string_view kWipe = "\r\x1b[K";

std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::size_t files) : shown_{isatty(STDERR_FILENO) == 1}, files_{files} {}

Progress::~Progress() { clear(); }

void Progress::begin_file(std::string_view name) {
  ++file_;
  name_ = name;
  last_percent_ = -1;
  at(0, 1);
}

void Progress::at(std::uint64_t read, std::uint64_t total) {
  if (!shown_ || total == 0) return;
  const int percent = static_cast<int>(100 * static_cast<double>(read) / static_cast<double>(total));
  if (percent == last_percent_) return;
  last_percent_ = percent;
  std::string bar(static_cast<std::size_t>(percent * kCells / 100), '#');
  bar.resize(kCells, '.');
  std::string line = fmt::format("[{}] {:>3} %  file {} of {}: {}", bar, percent, file_, files_, name_);
  // A line that the terminal breaks in two cannot be wiped.
  if (line.size() >= columns()) line.resize(columns() - 1);
  fmt::print(stderr, "{}{}", kWipe, line);
  std::fflush(stderr);
}

void Progress::clear() {
  if (!shown_ || last_percent_ < 0) return;
  fmt::print(stderr, "{}", kWipe);
  std::fflush(stderr);
  last_percent_ = -1;
}

}  // namespace gpudiag::tool
