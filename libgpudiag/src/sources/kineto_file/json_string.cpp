// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/json_string.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

namespace gpudiag::kineto_file {
namespace {

constexpr std::uint32_t kReplacement = 0xfffd;

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

/// The four hexadecimal digits at `at`.
std::optional<std::uint32_t> hex4(std::string_view text, std::size_t at) {
  if (at + 4 > text.size()) return std::nullopt;
  std::uint32_t value = 0;
  const char* const from = text.data() + at;
  const auto [end, error] = std::from_chars(from, from + 4, value, 16);
  if (error != std::errc{} || end != from + 4) return std::nullopt;
  return value;
}

/// Appends the character whose `\u` stands at `at`; returns where the text goes on.
std::size_t append_unicode(std::string& out, std::string_view text, std::size_t at) {
  const auto first = hex4(text, at + 2);
  if (!first) {
    append_utf8(out, kReplacement);
    return at + 2;
  }
  const bool high = *first >= 0xd800 && *first < 0xdc00;
  if (high && text.substr(at + 6, 2) == "\\u") {
    const auto second = hex4(text, at + 8);
    if (second && *second >= 0xdc00 && *second < 0xe000) {
      append_utf8(out, 0x10000 + ((*first - 0xd800) << 10) + (*second - 0xdc00));
      return at + 12;
    }
  }
  const bool surrogate = *first >= 0xd800 && *first < 0xe000;
  append_utf8(out, surrogate ? kReplacement : *first);
  return at + 6;
}

char simple_escape(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;
  }
}

}  // namespace

std::string unescaped(std::string_view escaped) {
  std::string out;
  out.reserve(escaped.size());
  for (std::size_t i = 0; i < escaped.size();) {
    if (escaped[i] != '\\' || i + 1 == escaped.size()) {
      out += escaped[i++];
    } else if (escaped[i + 1] == 'u') {
      i = append_unicode(out, escaped, i);
    } else {
      out += simple_escape(escaped[i + 1]);
      i += 2;
    }
  }
  return out;
}

}  // namespace gpudiag::kineto_file
