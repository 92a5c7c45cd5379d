// SPDX-License-Identifier: Apache-2.0
#include "sources/host/thread_log.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "sources/host/now.hpp"

namespace gpudiag {
namespace {

struct Seen {
  HostMessage message;
  std::string text;
};

/// Everything the logs hold but notes of our own time, which come when they come.
std::vector<Seen> drain() {
  std::vector<Seen> seen;
  ThreadLogs::drain([&](const HostMessage& message, std::string_view text) {
    if (message.kind != RecordKind::kOwn) seen.push_back({message, std::string{text}});
  });
  return seen;
}

class ThreadLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_host_log(true);
    drain();
    ThreadLogs::take_lost();
  }
  void TearDown() override { set_host_log(false); }
};

TEST_F(ThreadLogTest, ARangeIsOneMessageWhenItEnds) {
  log_push(0, "forward", RangeSource::kUser, 3, 42);
  EXPECT_TRUE(drain().empty());
  log_pop(0);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].text, "forward");
  EXPECT_EQ(seen[0].message.kind, RecordKind::kRange);
  EXPECT_EQ(seen[0].message.cause, 3);
  EXPECT_EQ(seen[0].message.value, 42u);
  EXPECT_EQ(seen[0].message.thread, this_thread_id());
  EXPECT_LE(seen[0].message.start, seen[0].message.end);
}

TEST_F(ThreadLogTest, TheInnermostOpenRangeIsSeenFromOutside) {
  const std::uint32_t thread = this_thread_id();
  EXPECT_FALSE(ThreadLogs::open_now(thread));
  const TimePoint before = now();
  log_push(0, "outer", RangeSource::kUser, 0, 0);
  log_push(0, "a range whose name is far longer than what is kept of it for others", RangeSource::kHook, 0, 0);
  log_push(0, "aten::mm", RangeSource::kOperator, 0, 0);
  std::thread([&] {
    const auto open = ThreadLogs::open_now(thread);
    ASSERT_TRUE(open);
    EXPECT_EQ(open->text, "a range whose name is far longer than what is ke");
    EXPECT_GE(open->start, before);
    EXPECT_FALSE(ThreadLogs::open_now(thread + 100'000));
  }).join();
  log_pop(0);
  log_pop(0);
  EXPECT_EQ(ThreadLogs::open_now(thread)->text, "outer");
  log_pop(0);
  EXPECT_FALSE(ThreadLogs::open_now(thread));
}

TEST_F(ThreadLogTest, TheTextOfTheInnermostRangeOfADomainIsThereUntilItIsPopped) {
  EXPECT_EQ(log_open_text(7), "");
  log_push(7, "of seven", RangeSource::kNvtx, 0, 0);
  log_push(8, "of eight", RangeSource::kNvtx, 0, 0);
  EXPECT_EQ(log_open_text(7), "of seven");
  log_pop(7);
  EXPECT_EQ(log_open_text(7), "");
  log_pop(8);
}

TEST_F(ThreadLogTest, RangesNest) {
  log_push(0, "outer", RangeSource::kUser, 0, 0);
  log_push(0, "inner", RangeSource::kUser, 0, 0);
  log_pop(0);
  log_pop(0);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].text, "inner");
  EXPECT_EQ(seen[1].text, "outer");
  EXPECT_LE(seen[1].message.start, seen[0].message.start);
}

TEST_F(ThreadLogTest, DomainsDoNotPopEachOthersRanges) {
  log_push(1, "mine", RangeSource::kUser, 0, 0);
  log_push(2, "theirs", RangeSource::kNvtx, 0, 0);
  log_pop(1);
  log_pop(2);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].text, "mine");
  EXPECT_EQ(seen[1].text, "theirs");
}

TEST_F(ThreadLogTest, APopWithoutAPushIsNothing) {
  log_pop(0);
  EXPECT_TRUE(drain().empty());
}

TEST_F(ThreadLogTest, RangesDeeperThanTheStackAreLeftOutAndTheOthersStayRight) {
  for (int i = 0; i < 100; ++i) log_push(0, "level " + std::to_string(i), RangeSource::kUser, 0, 0);
  for (int i = 0; i < 100; ++i) log_pop(0);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 64u);
  EXPECT_EQ(seen.front().text, "level 63");
  EXPECT_EQ(seen.back().text, "level 0");
}

TEST_F(ThreadLogTest, LongNamesAreCut) {
  log_push(0, std::string(1000, 'n'), RangeSource::kUser, 0, 0);
  log_pop(0);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].text, std::string(kRangeTextKept, 'n'));
}

/// Keeps all threads of its life on the processor that the caller is on, with a few that never rest.
class CrowdedProcessor {
 public:
  CrowdedProcessor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (int i = 0; i < 5; ++i)
      others_.emplace_back([this] {
        while (!done_) {
        }
      });
  }
  ~CrowdedProcessor() {
    done_ = true;
    for (auto& other : others_) other.join();
    sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_{};
  std::atomic<bool> done_{false};
  std::vector<std::thread> others_;
};

void spin_for(DurationNs length) {
  const TimePoint until = now() + length;
  while (now() < until) {
  }
}

TEST_F(ThreadLogTest, OfAWatchedWaitItIsToldWhetherTheThreadOnlyLackedAProcessor) {
  watch_wait("wait for batch");
  const CrowdedProcessor crowd;
  log_push(0, "wait for batch", RangeSource::kNvtx, 0, 0);
  spin_for(milliseconds(200));
  log_pop(0);
  log_push(0, "wait for batch", RangeSource::kNvtx, 0, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  log_pop(0);
  log_push(0, "another name", RangeSource::kNvtx, 0, 0);
  spin_for(milliseconds(200));
  log_pop(0);
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].message.flags, record_flag::kNotBlocked);
  EXPECT_EQ(seen[1].message.flags, 0) << "it slept";
  EXPECT_EQ(seen[2].message.flags, 0) << "nobody asked";
}

TEST_F(ThreadLogTest, WhatDoesNotFitIsCountedAndNotWaitedFor) {
  for (int i = 0; i < 100'000; ++i) log_mark(static_cast<std::uint64_t>(i), MarkSource::kStep);
  const auto seen = drain();
  EXPECT_GT(seen.size(), 100u);
  EXPECT_EQ(seen.size() + ThreadLogs::take_lost(), 100'000u);
  EXPECT_EQ(ThreadLogs::take_lost(), 0u);
}

TEST_F(ThreadLogTest, NothingIsWrittenWhileItIsOff) {
  set_host_log(false);
  log_push(0, "unseen", RangeSource::kUser, 0, 0);
  log_pop(0);
  log_mark(1, MarkSource::kStep);
  EXPECT_TRUE(drain().empty());
}

TEST_F(ThreadLogTest, AThreadThatEndedLeavesItsMessagesAndItsLog) {
  std::uint32_t id = 0;
  std::thread{[&] {
    id = this_thread_id();
    log_push(0, "short-lived", RangeSource::kUser, 0, 0);
    log_pop(0);
  }}.join();
  const auto seen = drain();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].text, "short-lived");
  EXPECT_EQ(seen[0].message.thread, id);
}

TEST_F(ThreadLogTest, LogsOfEndedThreadsServeNewOnes) {
  for (int i = 0; i < 1000; ++i) {
    std::thread{[] {
      log_push(0, "worker", RangeSource::kUser, 0, 0);
      log_pop(0);
    }}.join();
    ASSERT_EQ(drain().size(), 1u) << "after " << i << " threads";
  }
}

// Nobody drains between them, so a log must pass to the next thread with what it holds.
TEST_F(ThreadLogTest, AThousandShortThreadsBetweenTwoDrainsLoseNothing) {
  for (int i = 0; i < 1000; ++i) {
    std::thread{[] {
      log_push(0, "worker", RangeSource::kUser, 0, 0);
      log_pop(0);
    }}.join();
  }
  EXPECT_EQ(drain().size(), 1000u);
  EXPECT_EQ(ThreadLogs::take_lost(), 0u);
}

TEST_F(ThreadLogTest, HundredsOfThreadsAtOnceHaveALogEachAndBeyondTheLimitLossIsCounted) {
  constexpr int kThreads = 1100;
  std::atomic<int> written{0};
  std::atomic<bool> leave{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      log_mark(7, MarkSource::kStep);
      ++written;
      while (!leave) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
  }
  while (written < kThreads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::size_t seen = drain().size();
  EXPECT_GE(seen, 1000u);
  EXPECT_EQ(seen + ThreadLogs::take_lost(), static_cast<std::size_t>(kThreads));
  leave = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gpudiag
