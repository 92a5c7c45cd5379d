// SPDX-License-Identifier: Apache-2.0
#include "record/ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace gpudiag {
namespace {

struct SmallRing {
  alignas(8) std::byte storage[128];
  SpscRing ring{storage, sizeof storage};

  bool push(std::string_view text) {
    return ring.push(text.data(), static_cast<std::uint32_t>(text.size()), nullptr, 0);
  }
  std::vector<std::string> take() {
    std::vector<std::string> texts;
    ring.drain([&](std::span<const std::byte> bytes) {
      texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    return texts;
  }
};

TEST(Ring, GivesMessagesBackInOrderAndWhole) {
  SmallRing small;
  EXPECT_TRUE(small.push("one"));
  EXPECT_TRUE(small.push(""));
  EXPECT_TRUE(small.push("three and more"));
  EXPECT_EQ(small.take(), (std::vector<std::string>{"one", "", "three and more"}));
  EXPECT_TRUE(small.ring.empty());
}

TEST(Ring, JoinsTheTwoPartsOfAMessage) {
  SmallRing small;
  ASSERT_TRUE(small.ring.push("head", 4, "tail", 4));
  EXPECT_EQ(small.take(), (std::vector<std::string>{"headtail"}));
}

TEST(Ring, RefusesWhatDoesNotFitAndKeepsTheRest) {
  SmallRing small;
  EXPECT_TRUE(small.push(std::string(56, 'a')));   // 64 bytes with its header
  EXPECT_TRUE(small.push(std::string(56, 'b')));   // the other 64
  EXPECT_FALSE(small.push("c"));
  EXPECT_EQ(small.take(), (std::vector<std::string>{std::string(56, 'a'), std::string(56, 'b')}));
  EXPECT_TRUE(small.push("c"));
}

TEST(Ring, NeverSplitsAMessageAtTheEnd) {
  SmallRing small;
  ASSERT_TRUE(small.push(std::string(80, 'a')));  // 88 of 128 bytes
  ASSERT_EQ(small.take().size(), 1u);
  ASSERT_TRUE(small.push(std::string(48, 'b')));  // 56 do not fit into the last 40
  ASSERT_TRUE(small.push("c"));
  EXPECT_EQ(small.take(), (std::vector<std::string>{std::string(48, 'b'), "c"}));
}

TEST(Ring, RefusesAMessageLongerThanItself) {
  SmallRing small;
  EXPECT_FALSE(small.push(std::string(121, 'a')));
  EXPECT_TRUE(small.push(std::string(120, 'a')));
}

TEST(Ring, LosesNothingBetweenTwoThreads) {
  constexpr std::uint64_t kMessages = 200'000;
  alignas(8) static std::byte storage[1024];
  SpscRing ring{storage, sizeof storage};
  std::thread producer{[&] {
    const std::string padding(40, 'x');
    for (std::uint64_t i = 0; i < kMessages;)
      if (ring.push(&i, sizeof i, padding.data(), static_cast<std::uint32_t>(i % 41))) ++i;
      else std::this_thread::yield();
  }};
  std::uint64_t next = 0;
  bool in_order = true;
  while (next < kMessages) {
    ring.drain([&](std::span<const std::byte> bytes) {
      std::uint64_t value = 0;
      std::memcpy(&value, bytes.data(), sizeof value);
      in_order = in_order && value == next && bytes.size() == sizeof value + value % 41;
      ++next;
    });
    std::this_thread::yield();
  }
  producer.join();
  EXPECT_TRUE(in_order);
}

}  // namespace
}  // namespace gpudiag
