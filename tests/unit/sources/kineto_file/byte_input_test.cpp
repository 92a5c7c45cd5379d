// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/byte_input.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trace_file.hpp"

namespace gpudiag::kineto_file {
namespace {

using testing::gzip;
using testing::TraceFile;

struct ReadBytes {
  std::string text;
  bool damaged;
};

ReadBytes read_all(const TraceFile& file, std::size_t step) {
  auto input = open_input(file.path());
  EXPECT_TRUE(input.ok());
  ReadBytes result{};
  std::vector<char> buffer(step);
  for (std::size_t count = step; count == step;) {
    count = (*input)->read(buffer);
    result.text.append(buffer.data(), count);
  }
  result.damaged = (*input)->damaged();
  return result;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919) + ",";
  return text;
}

TEST(ByteInput, PlainAndGzipGiveTheSameBytes) {
  const std::string text = long_text();
  for (const std::size_t step : {1000u, 65536u, 10'000'000u}) {
    EXPECT_EQ(read_all(TraceFile{text}, step).text, text);
    const ReadBytes inflated = read_all(TraceFile{gzip(text)}, step);
    EXPECT_EQ(inflated.text, text);
    EXPECT_FALSE(inflated.damaged);
  }
}

TEST(ByteInput, MembersOfAGzipFileFollowEachOther) {
  const ReadBytes got = read_all(TraceFile{gzip("first,") + gzip("second") + gzip("")}, 100);
  EXPECT_EQ(got.text, "first,second");
  EXPECT_FALSE(got.damaged);
}

TEST(ByteInput, ZerosBehindTheLastMemberAreNoDamage) {
  const ReadBytes got = read_all(TraceFile{gzip("text") + std::string(512, '\0')}, 100);
  EXPECT_EQ(got.text, "text");
  EXPECT_FALSE(got.damaged);
}

TEST(ByteInput, ATruncatedGzipFileGivesWhatThereIs) {
  const std::string text = long_text();
  std::string file = gzip(text);
  file.resize(file.size() / 2);
  const ReadBytes got = read_all(TraceFile{file}, 4096);
  EXPECT_TRUE(got.damaged);
  EXPECT_GT(got.text.size(), 1000u);
  EXPECT_TRUE(text.starts_with(got.text));
}

TEST(ByteInput, DamageInAGzipFileIsNoticed) {
  std::string file = gzip(long_text());
  for (std::size_t i = file.size() / 2; i < file.size() / 2 + 64; ++i)
    file[i] = static_cast<char>(0xff);
  EXPECT_TRUE(read_all(TraceFile{file}, 4096).damaged);
}

TEST(ByteInput, SaysWhyAFileCannotBeOpened) {
  const auto missing = open_input("/nonexistent/trace.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message,
            "cannot open /nonexistent/trace.json: No such file or directory");
  const auto folder = open_input("/tmp");
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().message, "/tmp is a directory, not a trace");
}

}  // namespace
}  // namespace gpudiag::kineto_file
