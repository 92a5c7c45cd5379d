// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/json_string.hpp"

#include <gtest/gtest.h>

namespace gpudiag::kineto_file {
namespace {

TEST(JsonString, EscapesStandForTheirCharacters) {
  EXPECT_EQ(unescaped("plain"), "plain");
  EXPECT_EQ(unescaped(R"(a\"b\\c\/d\n\t)"), "a\"b\\c/d\n\t");
  EXPECT_EQ(unescaped(R"(\u0041\u00e9\u30AB)"), "Aéカ");
  EXPECT_EQ(unescaped(R"(\ud83d\ude80)"), "\U0001F680");
}

TEST(JsonString, HalfASurrogatePairIsReplaced) {
  EXPECT_EQ(unescaped(R"(a\ud83d)"), "a\uFFFD");
  EXPECT_EQ(unescaped(R"(\ude80b)"), "\uFFFDb");
  EXPECT_EQ(unescaped(R"(\ud83d\u0041)"), "\uFFFDA");
}

TEST(JsonString, WrongEscapesDoNotEndIt) {
  EXPECT_EQ(unescaped(R"(\q)"), "q");
  EXPECT_EQ(unescaped(R"(\u12)"), "\uFFFD12");
  EXPECT_EQ(unescaped(R"(\u-123)"), "\uFFFD-123");
  EXPECT_EQ(unescaped("end\\"), "end\\");
}

}  // namespace
}  // namespace gpudiag::kineto_file
