// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// Numbers as a trace's text writes them, read exactly: a double holds no time stamp of this century
// to the nanosecond.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpudiag::kineto_file {

/// A decimal number of microseconds, such as `1736412345678901.234`, `-3` or `1.5e3`, possibly in
/// quotes, in nanoseconds. Digits past the nanosecond round to the nearest. Nothing for any other
/// text (null, NaN, Infinity) and for what 64 bits do not hold.
std::optional<std::int64_t> nanoseconds_of_microseconds(std::string_view token);

/// An integer, possibly in quotes or the last word of a text in quotes (`"stream 7"`); a fraction
/// is cut off. Nothing for any other text. Values from 2^63 to 2^64 - 1 keep their bits.
std::optional<std::int64_t> integer_of(std::string_view token);

/// 32 bits for an id: itself where it fits (negative ones are how some writers print large ones),
/// else a hash, so that ids which differ in their upper half stay apart.
std::uint32_t fold_id(std::int64_t id);

/// The text of a JSON string token without its quotes, escapes as they are; other tokens unchanged.
std::string_view unquoted(std::string_view token);

}  // namespace gpudiag::kineto_file
