// SPDX-License-Identifier: Apache-2.0
// The engine's exact numbers for whole traces. Where they change on purpose, run
// tests/golden/update and read the difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "golden_text.hpp"
#include "traces_folder.hpp"

namespace gpudiag::golden {
namespace {

const std::filesystem::path kFolder = GPUDIAG_GOLDEN_FOLDER;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// Stems of the files in `expected/ours` or `expected/others`, sorted.
std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder / "expected" / folder)) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string test_name(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return text;
}

class OwnTrace : public ::testing::TestWithParam<std::string> {};

TEST_P(OwnTrace, GivesTheExpectedLedgers) {
  EXPECT_EQ(golden_text(kFolder / "traces" / (GetParam() + ".json")),
            content_of(kFolder / "expected" / "ours" / (GetParam() + ".txt")));
}

INSTANTIATE_TEST_SUITE_P(All, OwnTrace, ::testing::ValuesIn(names_in("ours")),
                         [](const auto& name) { return test_name(name.param); });

class OthersTrace : public ::testing::TestWithParam<std::string> {};

TEST_P(OthersTrace, GivesTheExpectedLedgers) {
  const std::filesystem::path path = traces_folder() / "pytorch" / (GetParam() + ".json.gz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << GetParam() << " " << kTraceSources;
  EXPECT_EQ(golden_text(path), content_of(kFolder / "expected" / "others" / (GetParam() + ".txt")));
}

INSTANTIATE_TEST_SUITE_P(All, OthersTrace, ::testing::ValuesIn(names_in("others")),
                         [](const auto& name) { return test_name(name.param); });

TEST(Golden, EachTraceOfOurOwnHasItsExpectation) {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder / "traces")) {
    EXPECT_TRUE(std::filesystem::exists(kFolder / "expected" / "ours" /
                                        (entry.path().stem().string() + ".txt")))
        << entry.path();
  }
}

}  // namespace
}  // namespace gpudiag::golden
