// SPDX-License-Identifier: Apache-2.0
#include "sources/text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpudiag {
namespace {

using namespace std::string_literals;

TEST(Text, KeepsCleanTextOfAnyLanguage) {
  for (const auto& text : {"aten::add"s, ""s, "Größe"s, "カーネル"s, "\xF0\x9F\x9A\x80"s}) {
    EXPECT_TRUE(is_clean_text(text)) << text;
    EXPECT_EQ(repaired_text(text), text);
  }
}

// T25: a name with the bytes 0x01, 0x00 and 0x7f.
TEST(Text, ReplacesControlCharacters) {
  const std::string text =
      "a\x01"
      "b\0c\x7f"
      "d\n"s;
  EXPECT_FALSE(is_clean_text(text));
  EXPECT_EQ(repaired_text(text), "a\uFFFDb\uFFFDc\uFFFDd\uFFFD");
}

// T28: Latin-1 bytes, and what else is no UTF-8.
TEST(Text, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(repaired_text("Gr\xF6\xDF"
                          "e"),
            "Gr\uFFFD\uFFFDe");
  EXPECT_EQ(repaired_text("cut \xE3\x82"), "cut \uFFFD\uFFFD");
  EXPECT_EQ(repaired_text("\xC0\xAF"), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(repaired_text("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "surrogate";
  EXPECT_EQ(repaired_text("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "past U+10FFFF";
  EXPECT_EQ(repaired_text("\x80"), "\uFFFD");
}

TEST(Text, CountsRepairsWhenInterning) {
  NameTable names;
  Quality quality;
  EXPECT_EQ(names.text(intern_clean(names, "clean", quality)), "clean");
  EXPECT_EQ(quality[Defect::kRepairedText], 0u);
  EXPECT_EQ(names.text(intern_clean(names,
                                    "not\x01"
                                    "clean",
                                    quality)),
            "not\uFFFDclean");
  EXPECT_EQ(quality[Defect::kRepairedText], 1u);
}

}  // namespace
}  // namespace gpudiag
