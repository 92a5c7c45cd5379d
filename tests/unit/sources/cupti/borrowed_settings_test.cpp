// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/borrowed_settings.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

CUpti_ActivityThreadIdType g_thread_ids;
std::uint8_t g_per_thread;

CuptiTable table() {
  CuptiTable cupti;
  cupti.get_thread_id_type = [](CUpti_ActivityThreadIdType* type) { return *type = g_thread_ids, CUPTI_SUCCESS; };
  cupti.set_thread_id_type = [](CUpti_ActivityThreadIdType type) { return g_thread_ids = type, CUPTI_SUCCESS; };
  cupti.get_attribute = [](CUpti_ActivityAttribute, std::size_t*, void* value) {
    return *static_cast<std::uint8_t*>(value) = g_per_thread, CUPTI_SUCCESS;
  };
  cupti.set_attribute = [](CUpti_ActivityAttribute attribute, std::size_t*, void* value) {
    EXPECT_EQ(attribute, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
    return g_per_thread = *static_cast<std::uint8_t*>(value), CUPTI_SUCCESS;
  };
  return cupti;
}

class Borrowed : public ::testing::Test {
 protected:
  Borrowed() {
    g_thread_ids = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
    g_per_thread = 1;
  }
  const CuptiTable cupti_ = table();
  BorrowedSettings settings_;
};

TEST_F(Borrowed, ThreadIdsAreTheSystemsWhileWeRecordAndAsFoundAfterwards) {
  settings_.take(cupti_);
  EXPECT_EQ(g_thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  settings_.give_back(cupti_);
  EXPECT_EQ(g_thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
}

// PyTorch's profiler ends its sessions with one buffer for all threads.
TEST_F(Borrowed, BuffersAreAgainAsTheyWereAtFirstAndThenAsTheOtherOneLeftThem) {
  settings_.take(cupti_);
  settings_.give_back(cupti_);
  EXPECT_EQ(g_per_thread, 1);
  g_per_thread = 0;
  settings_.take(cupti_);
  EXPECT_EQ(g_per_thread, 1);
  settings_.give_back(cupti_);
  EXPECT_EQ(g_per_thread, 0);
}

TEST_F(Borrowed, ACuptiWithoutThemIsLeftAlone) {
  const CuptiTable bare;
  settings_.take(bare);
  settings_.give_back(bare);
  EXPECT_EQ(g_per_thread, 1);
}

}  // namespace
}  // namespace gpudiag
