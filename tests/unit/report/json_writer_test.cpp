// SPDX-License-Identifier: Apache-2.0
#include "report/json_writer.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace gpudiag {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonString, PlainTextIsQuoted) { EXPECT_EQ(quoted("aten::mm"), "\"aten::mm\""); }

TEST(JsonString, QuotesAndBackslashesAreEscaped) {
  EXPECT_EQ(quoted("a\"b\\c"), "\"a\\\"b\\\\c\"");
}

TEST(JsonString, ControlCharactersAreEscaped) {
  EXPECT_EQ(quoted(std::string_view("\x01\x00\x7f\n\r\t\x1f", 7)),
            "\"\\u0001\\u0000\x7f\\n\\r\\t\\u001f\"");
}

TEST(JsonString, ValidUtf8OfAllLengthsIsKept) {
  EXPECT_EQ(quoted("é € 😀"), "\"é € 😀\"");
}

TEST(JsonString, EachByteThatIsNotUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(quoted("caf\xe9!"), "\"caf\uFFFD!\"");
  EXPECT_EQ(quoted("\xff\xfe"), "\"\uFFFD\uFFFD\"");
}

TEST(JsonString, OverlongFormsSurrogatesAndTooLargeCodePointsAreReplaced) {
  EXPECT_EQ(quoted("\xc0\xaf"), "\"\uFFFD\uFFFD\"");
  EXPECT_EQ(quoted("\xe0\x80\xaf"), "\"\uFFFD\uFFFD\uFFFD\"");
  EXPECT_EQ(quoted("\xed\xa0\x80"), "\"\uFFFD\uFFFD\uFFFD\"");
  EXPECT_EQ(quoted("\xf4\x90\x80\x80"), "\"\uFFFD\uFFFD\uFFFD\uFFFD\"");
}

TEST(JsonString, ASequenceCutOffAtTheEndIsReplaced) {
  EXPECT_EQ(quoted("x\xe2\x82"), "\"x\uFFFD\uFFFD\"");
}

TEST(JsonWriter, NestsObjectsAndArraysWithCommasBetween) {
  std::string out;
  JsonWriter json{out};
  json.begin_object().field("a", 1).key("b").begin_array().value(2).begin_object().end_object();
  json.value("x").end_array().field("c", true).end_object();
  EXPECT_EQ(out, R"({"a":1,"b":[2,{},"x"],"c":true})");
}

TEST(JsonWriter, IntegersKeepEveryDigit) {
  std::string out;
  JsonWriter json{out};
  json.begin_array().value(std::numeric_limits<std::int64_t>::min());
  json.value(std::numeric_limits<std::uint64_t>::max()).end_array();
  EXPECT_EQ(out, "[-9223372036854775808,18446744073709551615]");
}

TEST(JsonWriter, NumbersThatAreNotFiniteBecomeNull) {
  std::string out;
  JsonWriter json{out};
  json.begin_array().value(std::numeric_limits<double>::infinity());
  json.value(std::numeric_limits<double>::quiet_NaN()).value(0.25).value(2.0).end_array();
  EXPECT_EQ(out, "[null,null,0.25,2.0]");
}

TEST(JsonWriter, WhatIsNotKnownIsNull) {
  std::string out;
  JsonWriter json{out};
  json.begin_object().field("known", std::optional<DurationNs>{DurationNs{5}});
  json.field("unknown", std::optional<DurationNs>{}).end_object();
  EXPECT_EQ(out, R"({"known":5,"unknown":null})");
}

}  // namespace
}  // namespace gpudiag
