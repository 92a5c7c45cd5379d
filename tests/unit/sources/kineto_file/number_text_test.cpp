// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/number_text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

namespace gpudiag::kineto_file {
namespace {

// T22: nanoseconds behind a time of this century, which a double rounds to 256 ns.
TEST(NumberText, MicrosecondsAreExactToTheNanosecond) {
  EXPECT_EQ(nanoseconds_of_microseconds("1736412345678901.234"), 1736412345678901234);
  EXPECT_EQ(nanoseconds_of_microseconds("4458676522690.655"), 4458676522690655);
  EXPECT_EQ(nanoseconds_of_microseconds("0.3"), 300);
  EXPECT_EQ(nanoseconds_of_microseconds("1623143093496523"), 1623143093496523000);
  EXPECT_EQ(nanoseconds_of_microseconds("0"), 0);
  EXPECT_EQ(nanoseconds_of_microseconds("0.000"), 0);
}

TEST(NumberText, NegativeTimesKeepTheirSign) {
  EXPECT_EQ(nanoseconds_of_microseconds("-1.5"), -1500);
  EXPECT_EQ(nanoseconds_of_microseconds("-0.001"), -1);
}

// T29: a time stamp as a string.
TEST(NumberText, QuotesDoNotMatter) {
  EXPECT_EQ(nanoseconds_of_microseconds("\"1736412345678901.234\""), 1736412345678901234);
  EXPECT_EQ(nanoseconds_of_microseconds(" \"7\" \n"), 7000);
}

TEST(NumberText, ExponentsMoveThePoint) {
  EXPECT_EQ(nanoseconds_of_microseconds("1.7364123456789e15"), 1736412345678900000);
  EXPECT_EQ(nanoseconds_of_microseconds("1.5E+3"), 1'500'000);
  EXPECT_EQ(nanoseconds_of_microseconds("1500e-3"), 1500);
  EXPECT_EQ(nanoseconds_of_microseconds("1e-9"), 0);
}

TEST(NumberText, DigitsPastTheNanosecondRoundToTheNearest) {
  EXPECT_EQ(nanoseconds_of_microseconds("1.2344999"), 1234);
  EXPECT_EQ(nanoseconds_of_microseconds("1.2345"), 1235);
  EXPECT_EQ(nanoseconds_of_microseconds("0.0009999999999999999999999"), 1);
}

// T26: what some writers print for a value they do not have.
TEST(NumberText, WhatIsNoNumberIsNothing) {
  for (const char* text : {"", "null", "NaN", "Infinity", "-Infinity", "inf", "abc", "1e", "1e5x",
                           "1.2.3", "-", "true", "\"\"", "12abc", "1e99999999999"}) {
    EXPECT_EQ(nanoseconds_of_microseconds(text), std::nullopt) << text;
  }
}

TEST(NumberText, WhatNoInt64HoldsIsNothing) {
  EXPECT_EQ(nanoseconds_of_microseconds("9223372036854775.807"),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(nanoseconds_of_microseconds("9223372036854775.808"), std::nullopt);
  EXPECT_EQ(nanoseconds_of_microseconds("1e300"), std::nullopt);
  EXPECT_EQ(nanoseconds_of_microseconds("00000000000000000000000000000000001"), 1000);
}

TEST(NumberText, IntegersAreReadFromNumbersAndTexts) {
  EXPECT_EQ(integer_of("25738"), 25738);
  EXPECT_EQ(integer_of("\"25738\""), 25738);
  EXPECT_EQ(integer_of("\"stream 7\""), 7);
  EXPECT_EQ(integer_of("-1"), -1);
  EXPECT_EQ(integer_of("7.0"), 7);
  EXPECT_EQ(integer_of("9007199254740993"), 9007199254740993) << "2^53 + 1, which no double holds";
  EXPECT_EQ(integer_of("18446744073709551615"), -1);
  for (const char* text : {"", "null", "\"Spans\"", "\"\"", "NaN", "1x", "99999999999999999999"}) {
    EXPECT_EQ(integer_of(text), std::nullopt) << text;
  }
}

TEST(NumberText, IdsPast32BitsStayApart) {
  EXPECT_EQ(fold_id(4294967295), 4294967295u);
  EXPECT_EQ(fold_id(-1), 4294967295u);
  EXPECT_NE(fold_id(std::int64_t{1} << 60), fold_id((std::int64_t{1} << 60) + 1));
  EXPECT_NE(fold_id(std::int64_t{1} << 60), 0u);
}

}  // namespace
}  // namespace gpudiag::kineto_file
