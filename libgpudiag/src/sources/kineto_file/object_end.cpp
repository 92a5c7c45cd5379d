// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/object_end.hpp"

#include <bit>
#include <cstdint>
#include <string>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gpudiag::kineto_file {
namespace {

constexpr std::size_t kBlock = 64;
constexpr int kMaxDepth = 1024;
using Bits = std::uint64_t;

/// A bit for each byte of a block.
struct Classes {
  Bits quote = 0;
  Bits backslash = 0;
  Bits open = 0;          ///< {
  Bits close = 0;         ///< }
  Bits after_string = 0;  ///< may follow a string: white space , : } ]
};

#if defined(__SSE2__)

Classes classify(const char* block) {
  Classes classes;
  for (unsigned i = 0; i < kBlock; i += 16) {
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const auto equal = [](__m128i a, char c) { return _mm_cmpeq_epi8(a, _mm_set1_epi8(c)); };
    const auto bits = [i](__m128i mask) {
      return Bits{static_cast<std::uint32_t>(_mm_movemask_epi8(mask))} << i;
    };
    const __m128i close_either = equal(_mm_or_si128(text, _mm_set1_epi8(0x20)), '}');
    const __m128i white = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x20)), text);
    const __m128i separator = _mm_or_si128(equal(text, ','), equal(text, ':'));
    classes.quote |= bits(equal(text, '"'));
    classes.backslash |= bits(equal(text, '\\'));
    classes.open |= bits(equal(text, '{'));
    classes.close |= bits(equal(text, '}'));
    classes.after_string |= bits(_mm_or_si128(_mm_or_si128(close_either, white), separator));
  }
  return classes;
}

#else

Classes classify(const char* block) {
  Classes classes;
  for (unsigned i = 0; i < kBlock; ++i) {
    const auto c = static_cast<unsigned char>(block[i]);
    classes.quote |= Bits{c == '"'} << i;
    classes.backslash |= Bits{c == '\\'} << i;
    classes.open |= Bits{c == '{'} << i;
    classes.close |= Bits{c == '}'} << i;
    classes.after_string |= Bits{c <= 0x20 || c == ',' || c == ':' || c == '}' || c == ']'} << i;
  }
  return classes;
}

#endif

/// Bit i is the parity of the bits 0 to i.
Bits prefix_parity(Bits bits) {
  for (unsigned shift = 1; shift < kBlock; shift *= 2) bits ^= bits << shift;
  return bits;
}

/// Bytes that a backslash takes their meaning; `carry` says so of the next block's first byte.
Bits find_escaped(Bits backslash, bool& carry) {
  Bits escaped = carry ? 1 : 0;
  backslash &= ~escaped;
  carry = false;
  while (backslash != 0) {
    const int i = std::countr_zero(backslash);
    if (i == 63) {
      carry = true;
      break;
    }
    escaped |= Bits{1} << (i + 1);
    backslash &= ~(Bits{3} << i);
  }
  return escaped;
}

const char* previous_solid(const char* at, const char* begin) {
  do --at;
  while (at > begin && static_cast<unsigned char>(*at) <= 0x20);
  return at;
}

/// Whether the innermost bracket open at `at` is that of an array.
bool inside_array(const char* begin, const char* at) {
  std::string stack;
  bool in_string = false;
  for (const char* c = begin; c < at; ++c) {
    if (in_string) {
      if (*c == '\\')
        ++c;
      else if (*c == '"')
        in_string = false;
    } else if (*c == '"') {
      in_string = true;
    } else if (*c == '{' || *c == '[') {
      stack.push_back(*c);
    } else if ((*c == '}' || *c == ']') && !stack.empty()) {
      stack.pop_back();
    }
  }
  return !stack.empty() && stack.back() == '[';
}

/// An inner object follows a colon, or stands in an array.
bool may_open(const char* begin, const char* at) {
  const char before = *previous_solid(at, begin);
  return before == ':' || before == '[' || (before == ',' && inside_array(begin, at));
}

}  // namespace

ObjectEnd find_object_end(const char* begin, const char* end) {
  bool escape_carry = false;
  bool string_ended = false;
  Bits in_string_carry = 0;
  int depth = 0;
  for (const char* block = begin; block < end; block += kBlock) {
    const Classes classes = classify(block);
    const Bits quote = classes.quote & ~find_escaped(classes.backslash, escape_carry);
    const Bits in_string = prefix_parity(quote) ^ in_string_carry;
    const Bits closing = quote & ~in_string;
    const Bits wrong = ((closing << 1) | (string_ended ? 1 : 0)) & ~classes.after_string;
    const int first_wrong = std::countr_zero(wrong);
    const auto left = static_cast<std::size_t>(end - block);
    const int limit = static_cast<int>(left < kBlock ? left : kBlock);
    for (Bits braces = (classes.open | classes.close) & ~in_string; braces != 0;
         braces &= braces - 1) {
      const int i = std::countr_zero(braces);
      if (i >= limit || i > first_wrong) break;
      if ((classes.open >> i & 1) != 0) {
        if (depth > 0 && !may_open(begin, block + i)) return {ObjectEnd::kMalformed, block + i};
        if (++depth > kMaxDepth) return {ObjectEnd::kMalformed, block + i};
      } else if (--depth == 0) {
        return {ObjectEnd::kComplete, block + i + 1};
      }
    }
    if (first_wrong < limit) return {ObjectEnd::kMalformed, block + first_wrong};
    in_string_carry = (in_string >> 63) != 0 ? ~Bits{0} : 0;
    string_ended = (closing >> 63) != 0;
  }
  return {ObjectEnd::kIncomplete, end};
}

const char* find_value_end(const char* begin, const char* end) {
  const auto ends_scalar = [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == ',' || c == '}' || c == ']';
  };
  bool in_string = false;
  int depth = 0;
  for (const char* c = begin; c < end; ++c) {
    if (in_string) {
      if (*c == '\\')
        ++c;
      else if (*c == '"')
        in_string = false;
      else
        continue;
      if (!in_string && depth == 0) return c + 1;
    } else if (*c == '"') {
      in_string = true;
    } else if (*c == '{' || *c == '[') {
      ++depth;
    } else if (depth > 0) {
      if ((*c == '}' || *c == ']') && --depth == 0) return c + 1;
    } else if (ends_scalar(*c)) {
      return c;
    }
  }
  return nullptr;
}

}  // namespace gpudiag::kineto_file
