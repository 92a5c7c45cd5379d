// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Small files of /proc and /sys, read whole. Each is opened anew: a descriptor that is kept may be
// closed by the job (who closes all it does not know) and be a file of its own by then.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpudiag {

/// Holds the text of the last file read.
template <std::size_t Size>
class ProcFile {
 public:
  /// Empty where it cannot be read; longer ones are cut.
  std::string_view read(const char* path) noexcept {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    std::size_t got = 0;
    while (got < Size) {
      const ssize_t more = ::read(file, text_.data() + got, Size - got);
      if (more <= 0) break;
      got += static_cast<std::size_t>(more);
    }
    ::close(file);
    return {text_.data(), got};
  }

 private:
  std::array<char, Size> text_;
};

/// Takes the next word off `text`, up to a blank or the end of a line; empty where there is none.
inline std::string_view take_word(std::string_view& text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  const std::size_t end = text.find_first_of(" \t\n");
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(word.size());
  return word;
}

/// Takes the next line off `text`, without its end.
inline std::string_view take_line(std::string_view& text) noexcept {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// A number and nothing else; `0x` before it for base 16.
template <typename Number = std::uint64_t>
std::optional<Number> number_of(std::string_view word) noexcept {
  int base = 10;
  if (word.starts_with("0x")) {
    base = 16;
    word.remove_prefix(2);
  }
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return number;
}

}  // namespace gpudiag
