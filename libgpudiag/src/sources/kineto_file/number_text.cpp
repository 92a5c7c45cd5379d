// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

namespace gpudiag::kineto_file {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Takes the sign off `text`.
bool take_minus(std::string_view& text) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  return minus;
}

std::size_t count_digits(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  return static_cast<std::size_t>(end - text.begin());
}

/// Value of the digits of `whole` and `fraction` with the point moved `shift` places to the right,
/// rounded to the nearest; nothing above 2^63 - 1.
std::optional<std::int64_t> shifted(std::string_view whole, std::string_view fraction,
                                    std::int64_t shift) {
  const auto count = static_cast<std::int64_t>(whole.size() + fraction.size());
  const auto digit = [&](std::int64_t i) {
    if (i < 0 || i >= count) return 0;
    const auto at = static_cast<std::size_t>(i);
    return (at < whole.size() ? whole[at] : fraction[at - whole.size()]) - '0';
  };
  std::int64_t first = 0;
  while (first < count && digit(first) == 0) ++first;
  if (first == count) return 0;
  const std::int64_t point = static_cast<std::int64_t>(whole.size()) + shift;
  if (point - first > 19) return std::nullopt;
  std::uint64_t value = 0;  // at most 19 digits: cannot wrap
  for (std::int64_t i = first; i < point; ++i) {
    value = value * 10 + static_cast<std::uint64_t>(digit(i));
  }
  if (digit(point) >= 5) ++value;
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

/// `e+12` and the like; 0 for no text, nothing for any other.
std::optional<std::int64_t> exponent_of(std::string_view text) {
  if (text.empty()) return 0;
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool minus = take_minus(text);
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return minus ? -std::int64_t{value} : std::int64_t{value};
}

/// The form of nearly all time stamps: at most 15 or 16 digits, a point and at most three more.
/// False for any other, which the general way then reads.
bool read_plain(std::string_view token, std::int64_t& ns) {
  constexpr std::size_t kMaxWhole = 16;
  constexpr std::int64_t kMaxMicroseconds = 9'000'000'000'000'000;
  std::size_t i = 0;
  std::int64_t value = 0;
  for (; i < token.size() && is_digit(token[i]); ++i) {
    if (i == kMaxWhole) return false;
    value = value * 10 + (token[i] - '0');
  }
  if (i == 0 || value > kMaxMicroseconds) return false;
  int places = 0;
  if (i < token.size() && token[i] == '.') {
    for (++i; i < token.size() && is_digit(token[i]); ++i) {
      if (++places > 3) return false;
      value = value * 10 + (token[i] - '0');
    }
  }
  for (; places < 3; ++places) value *= 10;
  for (; i < token.size(); ++i)
    if (token[i] != ' ' && token[i] != '\n') return false;
  ns = value;
  return true;
}

std::string_view last_word(std::string_view text) {
  const std::size_t space = text.find_last_of(' ');
  return space == text.npos ? text : text.substr(space + 1);
}

}  // namespace

std::string_view unquoted(std::string_view token) {
  token = trimmed(token);
  if (!token.starts_with('"')) return token;
  token.remove_prefix(1);
  return token.substr(0, token.find_last_of('"'));
}

std::optional<std::int64_t> nanoseconds_of_microseconds(std::string_view token) {
  if (std::int64_t plain = 0; read_plain(token, plain)) return plain;
  std::string_view text = trimmed(unquoted(token));
  const bool minus = take_minus(text);
  const std::string_view whole = text.substr(0, count_digits(text));
  text.remove_prefix(whole.size());
  std::string_view fraction;
  if (text.starts_with('.')) {
    fraction = text.substr(1, count_digits(text.substr(1)));
    text.remove_prefix(1 + fraction.size());
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  const auto exponent = exponent_of(text);
  if (!exponent) return std::nullopt;
  const auto value = shifted(whole, fraction, *exponent + 3);
  return value && minus ? -*value : value;
}

std::optional<std::int64_t> integer_of(std::string_view token) {
  std::string_view text = trimmed(unquoted(token));
  if (token.find('"') != token.npos) text = last_word(text);
  const bool minus = take_minus(text);
  const char* const last = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || (end != last && *end != '.')) return std::nullopt;
  return static_cast<std::int64_t>(minus ? std::uint64_t{0} - value : value);
}

std::uint32_t fold_id(std::int64_t id) {
  if (id >= std::numeric_limits<std::int32_t>::min() &&
      id <= std::numeric_limits<std::uint32_t>::max()) {
    return static_cast<std::uint32_t>(id);
  }
  const auto bits = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u;  // Fibonacci hashing
  return static_cast<std::uint32_t>(bits >> 32);
}

}  // namespace gpudiag::kineto_file
