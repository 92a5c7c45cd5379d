// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// Where a JSON object ends, found without parsing it.
#pragma once

#include <cstddef>

namespace gpudiag::kineto_file {

/// Bytes that must be readable past the end of what is scanned; what they hold does not matter.
inline constexpr std::size_t kScanPadding = 64;

struct ObjectEnd {
  enum Kind {
    kComplete,    ///< `end` is one past its closing brace
    kIncomplete,  ///< the text ends first
    kMalformed,   ///< no JSON, at `end`: a quote or a brace is missing or one too many
  };
  Kind kind;
  const char* end;
};

/// `begin` points at `{`. Follows strings and escapes, counts braces, and looks at what follows
/// each string and what precedes each brace: a lost quote or brace would otherwise swallow all that
/// follows. Deeper nesting than 1,024 (what the parser takes) is malformed.
ObjectEnd find_object_end(const char* begin, const char* end);

/// One past the JSON value at `begin` (an object, array, string or scalar), or null where it does
/// not end before `end`. Slow; for the few values beside the events.
const char* find_value_end(const char* begin, const char* end);

}  // namespace gpudiag::kineto_file
