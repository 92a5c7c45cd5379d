// SPDX-License-Identifier: Apache-2.0
#include "sources/text.hpp"

#include <algorithm>
#include <cstdint>

namespace gpudiag {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

constexpr bool is_control(unsigned char c) {
  return c < 0x20 || c == 0x7f;
}

unsigned char at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
}

bool continues(std::string_view text, std::size_t i) {
  return (at(text, i) & 0xc0) == 0x80;
}

/// Length of the well-formed UTF-8 sequence that begins at `i`, 0 where none does (overlong forms,
/// surrogates and values past U+10FFFF included).
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const unsigned lead = at(text, i);
  const unsigned second = at(text, i + 1);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4 || !continues(text, i + 1)) return 0;
  if (lead < 0xe0) return 2;
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f)) return 0;
  if (!continues(text, i + 2)) return 0;
  if (lead < 0xf0) return 3;
  if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) return 0;
  return continues(text, i + 3) ? 4 : 0;
}

}  // namespace

bool is_clean_text(std::string_view text) {
  const auto plain = [](char c) { return !is_control(static_cast<unsigned char>(c)) && (c & 0x80) == 0; };
  if (std::ranges::all_of(text, plain)) return true;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = is_control(at(text, i)) ? 0 : sequence_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string repaired_text(std::string_view text) {
  std::string out;
  out.reserve(text.size() + kReplacement.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = is_control(at(text, i)) ? 0 : sequence_length(text, i);
    out += length == 0 ? kReplacement : text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

NameId intern_clean(NameTable& names, std::string_view text, Quality& quality) {
  if (is_clean_text(text)) return names.intern(text);
  ++quality[Defect::kRepairedText];
  return names.intern(repaired_text(text));
}

}  // namespace gpudiag
