// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "sources/host/now.hpp"

namespace gpudiag {
namespace {

TEST(BufferPool, GivesBackInTheOrderInWhichBuffersWereFilled) {
  BufferPool pool{8};
  std::uint8_t* first = pool.take();
  std::uint8_t* second = pool.take();
  ASSERT_NE(first, second);
  pool.give_back(second, 100);
  pool.give_back(first, 200);
  const auto filled = pool.filled();
  ASSERT_EQ(filled.size(), 2u);
  EXPECT_EQ(filled[0].data, second);
  EXPECT_EQ(filled[0].valid_bytes, 100u);
  EXPECT_EQ(filled[1].data, first);
  EXPECT_EQ(pool.held(), 0u);
}

TEST(BufferPool, UsesARecycledBufferAgainAndNoOtherMemory) {
  BufferPool pool{8};
  for (int i = 0; i < 1000; ++i) {
    pool.give_back(pool.take(), 1);
    for (const auto& buffer : pool.filled()) pool.recycle(buffer);
  }
  EXPECT_EQ(pool.made(), 1u);
}

TEST(BufferPool, WhatIsAbandonedIsNotWaitedForAndNeverHandedOut) {
  BufferPool pool{8};
  std::uint8_t* lost = pool.take();
  EXPECT_EQ(pool.abandon_held(), 1u);
  EXPECT_EQ(pool.held(), 0u);
  EXPECT_EQ(pool.oldest_held(), kTimeMax);
  for (int i = 0; i < 100; ++i) {
    std::uint8_t* other = pool.take();
    EXPECT_NE(other, lost);
    pool.give_back(other, 1);
    for (const auto& buffer : pool.filled()) pool.recycle(buffer);
  }
}

TEST(BufferPool, AnAbandonedBufferThatComesAfterAllIsUsedAgainAndItsRecordsAreNot) {
  BufferPool pool{1};
  std::uint8_t* late = pool.take();
  pool.abandon_held();
  pool.give_back(late, 500);
  EXPECT_TRUE(pool.filled().empty());
  EXPECT_EQ(pool.held(), 0u);
  EXPECT_EQ(pool.take(), late);
}

TEST(BufferPool, CountsHowOftenItWasAsked) {
  BufferPool pool{2};
  EXPECT_EQ(pool.taken(), 0u);
  pool.give_back(pool.take(), 1);
  pool.take();
  EXPECT_EQ(pool.taken(), 2u);
}

TEST(BufferPool, NeverHandsOutABufferThatSomebodyHolds) {
  BufferPool pool{4};
  std::set<std::uint8_t*> held;
  for (int i = 0; i < 16; ++i) {
    std::uint8_t* buffer = pool.take();
    ASSERT_NE(buffer, nullptr);
    EXPECT_TRUE(held.insert(buffer).second) << "handed out twice";
  }
}

TEST(BufferPool, SacrificesAFilledBufferAtItsLimitAndCountsWhatWasInIt) {
  BufferPool pool{1};
  pool.give_back(pool.take(), 1000);
  std::uint8_t* second = pool.take();
  pool.take();
  EXPECT_EQ(pool.made(), 2u);
  EXPECT_EQ(pool.take_sacrificed_bytes(), 1000u);
  EXPECT_EQ(pool.take_sacrificed_bytes(), 0u);
  pool.give_back(second, 10);
  EXPECT_EQ(pool.filled().size(), 1u);
}

TEST(BufferPool, BuffersThatThreadsHoldDoNotUseItsLimitUp) {
  BufferPool pool{4};
  std::vector<std::uint8_t*> held;
  for (int i = 0; i < 200; ++i) held.push_back(pool.take());
  for (int i = 0; i < 3; ++i) pool.give_back(held[static_cast<std::size_t>(i)], 100);
  for (int i = 0; i < 3; ++i) pool.take();
  EXPECT_EQ(pool.take_sacrificed_bytes(), 0u);
  EXPECT_EQ(pool.filled().size(), 3u);
}

TEST(BufferPool, KnowsSinceWhenTheOldestBufferIsOut) {
  BufferPool pool{4};
  EXPECT_EQ(pool.oldest_held(), kTimeMax);
  const TimePoint before = now();
  std::uint8_t* first = pool.take();
  const TimePoint between = now();
  std::uint8_t* second = pool.take();
  EXPECT_GE(pool.oldest_held(), before);
  EXPECT_LE(pool.oldest_held(), between);
  pool.give_back(first, 1);
  EXPECT_GE(pool.oldest_held(), between);
  pool.give_back(second, 1);
  EXPECT_EQ(pool.oldest_held(), kTimeMax);
}

TEST(BufferPool, IgnoresPointersOfOthersAndBuffersThatAreNotOut) {
  BufferPool pool{2};
  std::uint8_t foreign[64] = {};
  pool.give_back(foreign, 64);
  pool.give_back(nullptr, 64);
  std::uint8_t* buffer = pool.take();
  pool.give_back(buffer, 10);
  pool.give_back(buffer, 20);
  const auto filled = pool.filled();
  ASSERT_EQ(filled.size(), 1u);
  EXPECT_EQ(filled[0].valid_bytes, 10u);
}

TEST(BufferPool, ABufferMayBeWrittenLongAfterEverybodyElseIsDone) {
  auto pool = std::make_unique<BufferPool>(2);
  std::uint8_t* held = pool->take();
  std::thread late{[held] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::memset(held, 0xab, kActivityBufferBytes);
  }};
  pool->filled();
  late.join();
  EXPECT_EQ(held[kActivityBufferBytes - 1], 0xab);
}

TEST(BufferPool, ServesManyThreadsWithoutMixingTheirBuffers) {
  auto pool = std::make_unique<BufferPool>(64);
  std::atomic<bool> mixed{false};
  std::atomic<int> running{4};
  std::vector<std::thread> threads;
  for (std::uint8_t id = 1; id <= 4; ++id)
    threads.emplace_back([&, id] {
      for (int i = 0; i < 2000; ++i) {
        std::uint8_t* buffer = pool->take();
        std::memset(buffer, id, 256);
        if (buffer[0] != id || buffer[255] != id) mixed = true;
        pool->give_back(buffer, 256);
      }
      --running;
    });
  std::size_t seen = 0;
  const auto drain = [&] {
    for (const auto& buffer : pool->filled()) {
      for (int i = 1; i < 256; ++i)
        if (buffer.data[i] != buffer.data[0]) mixed = true;
      ++seen;
      pool->recycle(buffer);
    }
  };
  while (running > 0) drain();
  for (auto& thread : threads) thread.join();
  drain();
  EXPECT_FALSE(mixed);
  EXPECT_EQ(seen + pool->take_sacrificed_bytes() / 256, 8000u);
}

}  // namespace
}  // namespace gpudiag
