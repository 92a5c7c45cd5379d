// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// Writes JSON text piece by piece, with the commas, the escapes and nothing kept in between. What
// comes out is valid JSON and valid UTF-8 for any bytes a kernel or a range may be named by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "record/time.hpp"

namespace gpudiag {

/// Appends `text` with quotes. Control characters are escaped; each byte that is not part of valid
/// UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// Calls must nest as JSON does; that is the caller's promise and not checked. Appends to a string
/// that the caller may empty at any time between two calls, and so can be streamed.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  /// Text that is JSON already.
  JsonWriter& raw_json(std::string_view json);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view{text}); }
  JsonWriter& value(bool truth) { return raw_json(truth ? "true" : "false"); }
  JsonWriter& value(DurationNs duration) { return value(duration.ns); }
  JsonWriter& value(TimePoint time) { return value(time.ns); }
  JsonWriter& null() { return raw_json("null"); }
  /// Six decimals at most; null for what is not finite, since JSON has no word for it.
  JsonWriter& value(double number);

  template <typename Integer>
    requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>)
  JsonWriter& value(Integer number) {
    if constexpr (std::is_signed_v<Integer>) return signed_value(number);
    else return unsigned_value(number);
  }

  template <typename Value>
  JsonWriter& value(const std::optional<Value>& maybe) {
    return maybe ? value(*maybe) : null();
  }

  template <typename Value>
  JsonWriter& field(std::string_view name, const Value& content) {
    return key(name).value(content);
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& signed_value(std::int64_t number);
  JsonWriter& unsigned_value(std::uint64_t number);
  void separate();

  std::string& out_;
  bool need_comma_ = false;
};

}  // namespace gpudiag
