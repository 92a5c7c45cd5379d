// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// Records as bytes, field by field: only fields that are not at their defaults are written, each as
// one variable-length integer, so a record takes some 20 bytes and a reader can skip fields that a
// later version adds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "record/record.hpp"

namespace gpudiag {

/// Seven bits a byte, low ones first.
void append_varint(std::string& out, std::uint64_t number);
/// Takes one off the front of `bytes`; none where they end too early or it exceeds 64 bits.
std::optional<std::uint64_t> take_varint(std::string_view& bytes);

/// Text with its length before it.
void append_text(std::string& out, std::string_view text);
std::optional<std::string_view> take_text(std::string_view& bytes);

/// Writes a record relative to the one before it; both sides begin a frame with TimePoint{}.
void append_record(std::string& out, const Record& record, TimePoint& previous_start);
/// Nothing where the bytes are not a record, or hold an enumerator this version does not know.
std::optional<Record> take_record(std::string_view& bytes, TimePoint& previous_start);

}  // namespace gpudiag
