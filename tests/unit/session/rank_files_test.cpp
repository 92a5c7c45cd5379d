// SPDX-License-Identifier: Apache-2.0
#include "session/rank_files.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace gpudiag {
namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

IterationLedger ledger(std::uint64_t index, std::uint32_t device) {
  IterationLedger made;
  made.index = index;
  made.device = DeviceId{device};
  made.start = TimePoint{} + milliseconds(static_cast<std::int64_t>(index) * 10);
  made.wall = milliseconds(10);
  return made;
}

class RankFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rank_files_XXXXXX";
    folder_ = mkdtemp(name);
    who_.rank = 3;
    who_.world_size = 8;
    who_.job = "job";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string stem() const { return folder_ + "/rank3.pid7"; }

  std::string folder_;
  RankIdentity who_;
};

TEST_F(RankFilesTest, WhatWasFlushedIsThereThoughTheSessionNeverEnds) {
  RankFiles files{who_, [](DeviceId) { return DevicePlace{"GPU", "0000:3b:00.0", 1}; }};
  files.add(ledger(0, 0), {}, {});
  EXPECT_EQ(files.flush(""), "");  // before there is a folder it waits
  files.add(ledger(1, 0), {}, {});
  EXPECT_EQ(files.flush(stem()), "");
  files.add(ledger(2, 0), {}, {});
  const auto read = read_summary(text_of_file(stem() + ".ranks"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->iterations.size(), 2u);
  EXPECT_FALSE(read->finished);
  EXPECT_EQ(read->who.rank, 3u);
  EXPECT_EQ(read->who.pci, "0000:3b:00.0");
  EXPECT_EQ(read->who.numa_node, 1);
}

TEST_F(RankFilesTest, AFurtherDeviceHasAFileOfItsOwn) {
  RankFiles files{who_, nullptr};
  files.add(ledger(0, 2), {}, {});
  files.add(ledger(0, 5), {}, {});
  files.finish();
  EXPECT_EQ(files.flush(stem()), "");
  const auto first = read_summary(text_of_file(stem() + ".ranks"));
  const auto second = read_summary(text_of_file(stem() + ".dev5.ranks"));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->who.device, DeviceId{2});
  EXPECT_EQ(second->who.device, DeviceId{5});
  EXPECT_TRUE(first->finished);
}

TEST_F(RankFilesTest, WhatCannotBeWrittenIsSaidOnceAndCostsNothingElse) {
  RankFiles files{who_, nullptr};
  files.add(ledger(0, 0), {}, {});
  EXPECT_NE(files.flush(folder_ + "/no/such/rank3").find("cannot be written"), std::string::npos);
  files.add(ledger(1, 0), {}, {});
  EXPECT_EQ(files.flush(folder_ + "/no/such/rank3"), "");
}

}  // namespace
}  // namespace gpudiag
