// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peer_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace gpudiag {
namespace {

std::string fresh_name() {
  static int number = 0;
  return peer_memory_name("test " + std::to_string(getpid()) + " " + std::to_string(number++));
}

bool exists(const std::string& name) { return access(("/dev/shm" + name).c_str(), F_OK) == 0; }

TEST(PeerMemory, WhatOneRankWritesAnotherReads) {
  const std::string name = fresh_name();
  std::string error;
  const auto zero = PeerMemory::open(name, 3, 0, error);
  const auto two = PeerMemory::open(name, 3, 2, error);
  ASSERT_TRUE(zero && two) << error;
  EXPECT_FALSE(zero->read(2));
  two->write("hello");
  EXPECT_EQ(zero->read(2), "hello");
  two->write("a longer text than before");
  EXPECT_EQ(zero->read(2), "a longer text than before");
  EXPECT_EQ(zero->present(), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_FALSE(zero->read(1));
  EXPECT_FALSE(zero->read(9));
}

TEST(PeerMemory, TheNameGoesWithTheLast) {
  const std::string name = fresh_name();
  std::string error;
  {
    const auto zero = PeerMemory::open(name, 2, 0, error);
    { const auto one = PeerMemory::open(name, 2, 1, error); }
    EXPECT_TRUE(exists(name));
  }
  EXPECT_FALSE(exists(name));
}

TEST(PeerMemory, AnotherNumberOfRanksIsRefused) {
  const std::string name = fresh_name();
  std::string error;
  const auto zero = PeerMemory::open(name, 2, 0, error);
  EXPECT_FALSE(PeerMemory::open(name, 4, 1, error));
  EXPECT_FALSE(error.empty());
  EXPECT_FALSE(PeerMemory::open(name, 2, 2, error));
}

TEST(PeerMemory, ARankThatWasKilledIsKnownToBeGone) {
  const std::string name = fresh_name();
  std::string error;
  const auto zero = PeerMemory::open(name, 2, 0, error);
  const pid_t child = fork();
  if (child == 0) {
    const auto one = PeerMemory::open(name, 2, 1, error);
    one->write("here");
    _exit(0);  // without a destructor, as if killed
  }
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(zero->lives(1));
  EXPECT_EQ(zero->read(1), "here");
  const auto again = PeerMemory::open(name, 2, 1, error);  // an elastic launcher's new process
  ASSERT_TRUE(again) << error;
  EXPECT_TRUE(zero->lives(1));
}

TEST(PeerMemory, TheSlotOfALivingProcessIsNotTaken) {
  const std::string name = fresh_name();
  std::string error;
  const auto zero = PeerMemory::open(name, 2, 0, error);
  const pid_t child = fork();
  if (child == 0) _exit(PeerMemory::open(name, 2, 0, error) == nullptr ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(PeerMemory, AReaderNeverSeesHalfOfAState) {
  const std::string name = fresh_name();
  std::string error;
  const auto writer = PeerMemory::open(name, 2, 0, error);
  const auto reader = PeerMemory::open(name, 2, 1, error);
  std::atomic<bool> stop{false};
  std::thread writes([&] {
    for (char letter = 'a'; !stop; letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1))
      writer->write(std::string(1000 + static_cast<std::size_t>(letter) * 10, letter));
  });
  int seen = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (seen < 500 && std::chrono::steady_clock::now() < end)
    if (const auto bytes = reader->read(0)) {
      ++seen;
      ASSERT_EQ(bytes->find_first_not_of(bytes->front()), std::string::npos);
      ASSERT_EQ(bytes->size(), 1000 + static_cast<std::size_t>(bytes->front()) * 10);
    }
  stop = true;
  writes.join();
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace gpudiag
