// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/object_end.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpudiag::kineto_file {
namespace {

struct Found {
  ObjectEnd::Kind kind;
  std::size_t length;
  bool operator==(const Found&) const = default;
};

/// As if `junk` followed the text in its buffer, where it must not matter.
Found find(const std::string& text, char junk = '"') {
  const std::string padded = text + std::string(kScanPadding, junk);
  const ObjectEnd found = find_object_end(padded.data(), padded.data() + text.size());
  return {found.kind, static_cast<std::size_t>(found.end - padded.data())};
}

TEST(ObjectEnd, IsBehindTheClosingBrace) {
  EXPECT_EQ(find("{}"), (Found{ObjectEnd::kComplete, 2}));
  EXPECT_EQ(find(R"({"a": 1} , {"b": 2})"), (Found{ObjectEnd::kComplete, 8}));
  EXPECT_EQ(find(R"({"a": {"b": [1, {"c": 2}]}, "d": 3}x)"), (Found{ObjectEnd::kComplete, 35}));
}

TEST(ObjectEnd, BracesAndQuotesInStringsDoNotCount) {
  EXPECT_EQ(find(R"({"a": "}{"})"), (Found{ObjectEnd::kComplete, 11}));
  EXPECT_EQ(find(R"({"a": "\"}"})"), (Found{ObjectEnd::kComplete, 12}));
  EXPECT_EQ(find(R"({"a": "\\"})"), (Found{ObjectEnd::kComplete, 11}));
  EXPECT_EQ(find(R"({"a": "\\\"}"})"), (Found{ObjectEnd::kComplete, 14}));
}

TEST(ObjectEnd, IsFoundWhereverABlockEnds) {
  for (std::size_t pad = 0; pad < 150; ++pad) {
    const std::string fill(pad, 'x');
    const std::string plain = R"({"a": ")" + fill + R"(\"}", "b": {}})";
    EXPECT_EQ(find(plain), (Found{ObjectEnd::kComplete, plain.size()})) << pad;
    const std::string backslashes = R"({"a": ")" + fill + R"(\\"})";
    EXPECT_EQ(find(backslashes, '}'), (Found{ObjectEnd::kComplete, backslashes.size()})) << pad;
  }
}

TEST(ObjectEnd, TextThatEndsFirstIsIncomplete) {
  EXPECT_EQ(find("{", '}').kind, ObjectEnd::kIncomplete);
  EXPECT_EQ(find(R"({"a": "b)", '}').kind, ObjectEnd::kIncomplete);
  EXPECT_EQ(find(R"({"a": {"b": 1})", '}').kind, ObjectEnd::kIncomplete);
  EXPECT_EQ(find(R"({"a": "b")", '}').kind, ObjectEnd::kIncomplete);
}

TEST(ObjectEnd, ALostQuoteIsNoticedAtTheNextString) {
  EXPECT_EQ(find(R"({"name": "abc, "ts": 1}, {"name": "d"})").kind, ObjectEnd::kMalformed);
  EXPECT_EQ(find(R"({"name": "say "hi" to", "ts": 1})").kind, ObjectEnd::kMalformed);
  for (std::size_t pad = 0; pad < 150; ++pad) {
    const std::string text = R"({"name": ")" + std::string(pad, 'x') + R"(, "ts": 1})";
    EXPECT_EQ(find(text).kind, ObjectEnd::kMalformed) << pad;
  }
}

TEST(ObjectEnd, ALostBraceIsNoticedAtTheNextObject) {
  EXPECT_EQ(find(R"({"a": {"b": 1}, {"a": {"b": 2}})").kind, ObjectEnd::kMalformed);
  EXPECT_EQ(find(R"({"a": {"b": 1 {"a": 2}}})").kind, ObjectEnd::kMalformed);
  EXPECT_EQ(find(R"({"a": [1, {"b": "]"}, {"c": 2}]})").kind, ObjectEnd::kComplete);
}

TEST(ObjectEnd, NestingDeeperThanTheParserTakesIsMalformed) {
  std::string deep;
  for (int i = 0; i < 2000; ++i) deep += R"({"a":)";
  EXPECT_EQ(find(deep).kind, ObjectEnd::kMalformed);
}

TEST(ValueEnd, FindsTheEndOfEachKindOfValue) {
  const auto length = [](const std::string& text) {
    const char* end = find_value_end(text.data(), text.data() + text.size());
    return end == nullptr ? -1 : static_cast<int>(end - text.data());
  };
  EXPECT_EQ(length("17, "), 2);
  EXPECT_EQ(length("NaN}"), 3);
  EXPECT_EQ(length(R"("a\"b" : 1)"), 6);
  EXPECT_EQ(length(R"([1, "]", [2]], 3)"), 13);
  EXPECT_EQ(length(R"({"a": [1, "}"]} )"), 15);
  EXPECT_EQ(length("17"), -1);
  EXPECT_EQ(length(R"("a\")"), -1);
  EXPECT_EQ(length("[1"), -1);
}

}  // namespace
}  // namespace gpudiag::kineto_file
