// SPDX-License-Identifier: Apache-2.0
#include "session/appender.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace gpudiag {
namespace {

class AppenderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "appenderXXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ + "/" + name; }
  static std::string text_of(const std::string& path) {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

 private:
  std::string folder_;
};

TEST_F(AppenderTest, AFileOfTheJobsThatGotOurNumberIsNeitherWrittenNorClosed) {
  AppendFile ours;
  const int next = dup(STDIN_FILENO);  // the number that ours will get
  close(next);
  ASSERT_TRUE(ours.open(path("ours"), true));
  ASSERT_TRUE(ours.append("one\n"));
  {
    AppendFile closed_later;
    const int number = dup(STDIN_FILENO);
    close(number);
    ASSERT_TRUE(closed_later.open(path("later"), true));
    close(number);
    ASSERT_EQ(::open(path("jobs").c_str(), O_WRONLY | O_CREAT, 0600), number);
    EXPECT_FALSE(closed_later.append("two\n"));
    EXPECT_FALSE(closed_later.good());
  }
  EXPECT_EQ(fcntl(next + 1, F_GETFD) & ~FD_CLOEXEC, 0) << "the job's file was closed";
  EXPECT_EQ(text_of(path("jobs")), "");
  EXPECT_EQ(text_of(path("ours")), "one\n");
  close(next + 1);
}

TEST_F(AppenderTest, ANamedPipeWithoutAReaderIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  AppendFile file;
  EXPECT_FALSE(file.open(path("pipe"), false));
  EXPECT_EQ(errno, ENXIO);
}

TEST_F(AppenderTest, APipeThatNobodyEmptiesIsAFailureAndNotAWait) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  EXPECT_FALSE(write_all(ends[1], std::string(1 << 20, 'x')));
  EXPECT_EQ(errno, EAGAIN);
  close(ends[0]);
  EXPECT_FALSE(write_all(ends[1], "x"));  // and no SIGPIPE, which would end this test
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST_F(AppenderTest, TheLimitOfAFilesSizeIsAFailureAndNoSignal) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{10, before.rlim_max};
  AppendFile file;
  ASSERT_TRUE(file.open(path("limited"), true));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool written = file.append("more than ten bytes");
  const int error = errno;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(written);
  EXPECT_EQ(error, EFBIG);
}

}  // namespace
}  // namespace gpudiag
