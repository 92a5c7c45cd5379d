// SPDX-License-Identifier: Apache-2.0
// The watcher on this process, this kernel: threads and children that are held up for real.
#include "sources/host/watcher.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sources/host/now.hpp"

namespace gpudiag {
namespace {

struct Kept final : RecordSink {
  std::vector<Record> records;
  void add(const Record& record) override { records.push_back(record); }

  std::size_t count(ThreadId thread, HostState state) const {
    return static_cast<std::size_t>(std::count_if(records.begin(), records.end(), [&](const Record& record) {
      return record.thread == thread && record.state == state;
    }));
  }
};

IterationLedger waits_of(ThreadId thread, Cause cause) {
  IterationLedger ledger;
  ledger.wall = milliseconds(100);
  ledger.evidence.push_back({cause, SubCause::kNone, "", thread, 1, milliseconds(80), milliseconds(80), {}, 0});
  return ledger;
}

struct WatcherTest : ::testing::Test {
  Kept kept;
  std::vector<std::string> names;
  Watcher watcher{kept,
                  [this](std::string_view text) {
                    names.emplace_back(text);
                    return NameId{static_cast<std::uint32_t>(names.size())};
                  },
                  now()};

  /// Looks until `seen`, for ten seconds at the longest.
  bool looks_until(const std::function<bool()>& seen) {
    for (int i = 0; i < 1000 && !seen(); ++i) {
      usleep(10'000);
      watcher.look(now());
    }
    return seen();
  }
};

/// A thread that is at `go` while the object lives; `let_go` ends that.
class Held {
 public:
  Held(const std::function<void()>& go, std::function<void()> let_go)
      : let_go_{std::move(let_go)}, thread_{[this, go] {
          id_ = static_cast<std::uint32_t>(syscall(SYS_gettid));
          go();
        }} {
    while (id_ == 0) usleep(100);
  }
  ~Held() {
    let_go_();
    thread_.join();
  }
  ThreadId id() const { return ThreadId{id_.load()}; }

 private:
  std::atomic<std::uint32_t> id_{0};
  std::function<void()> let_go_;
  std::thread thread_;
};

TEST_F(WatcherTest, AThreadThatWaitsForAMutexIsSeenInALock) {
  std::mutex mutex;
  mutex.lock();
  const Held held{[&] { const std::lock_guard lock{mutex}; }, [&] { mutex.unlock(); }};
  watcher.iteration(waits_of(held.id(), Cause::kHost), now());
  EXPECT_TRUE(looks_until([&] { return kept.count(held.id(), HostState::kLock) >= 2; }));
}

TEST_F(WatcherTest, AThreadThatReadsAPipeIsSeenInAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Held held{[&] {
                    char byte = 0;
                    EXPECT_EQ(read(ends[0], &byte, 1), 1);
                  },
                  [&] { EXPECT_EQ(write(ends[1], "x", 1), 1); }};
  watcher.iteration(waits_of(held.id(), Cause::kHost), now());
  EXPECT_TRUE(looks_until([&] { return kept.count(held.id(), HostState::kPipe) >= 2; }));
}

TEST_F(WatcherTest, AThreadThatRunsHasItsProcessorTimeCounted) {
  std::atomic<bool> stop{false};
  const Held held{[&] {
                    while (!stop) {
                    }
                  },
                  [&] { stop = true; }};
  watcher.iteration(waits_of(held.id(), Cause::kHost), now());
  EXPECT_TRUE(looks_until([&] { return kept.count(held.id(), HostState::kReady) >= 3; }));
  for (const Record& record : kept.records) {
    EXPECT_LE(record.value + record.value2, static_cast<std::uint64_t>((record.end - record.start).ns));
  }
}

TEST_F(WatcherTest, LooksFollowEachOtherWithoutAHole) {
  std::atomic<bool> stop{false};
  const Held held{[&] {
                    while (!stop) usleep(1000);
                  },
                  [&] { stop = true; }};
  watcher.iteration(waits_of(held.id(), Cause::kHost), now());
  ASSERT_TRUE(looks_until([&] { return kept.records.size() >= 5; }));
  for (std::size_t i = 1; i < kept.records.size(); ++i)
    EXPECT_EQ(kept.records[i].start, kept.records[i - 1].end);
}

TEST_F(WatcherTest, AChildOfThisProgramIsAWorkerWhoseBirthAndEndAreSeen) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto self = static_cast<std::uint32_t>(syscall(SYS_gettid));
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(ends[0]);
  const ThreadId id{static_cast<std::uint32_t>(child)};
  watcher.iteration(waits_of(ThreadId{self}, Cause::kDataLoading), now());
  EXPECT_TRUE(looks_until([&] { return kept.count(id, HostState::kPipe) >= 2; }));
  for (const Record& record : kept.records)
    if (record.thread == id) {
      EXPECT_TRUE(record.has(record_flag::kWorker));
    }
  close(ends[1]);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(looks_until([&] { return kept.count(id, HostState::kGone) == 1; }));
}

TEST_F(WatcherTest, AThreadThatIsGoneIsNotReported) {
  ThreadId id{};
  {
    const Held held{[] {}, [] {}};
    id = held.id();
  }
  watcher.iteration(waits_of(id, Cause::kHost), now());
  for (int i = 0; i < 5; ++i) {
    usleep(25'000);
    watcher.look(now());
  }
  EXPECT_EQ(kept.records.size(), 0u);
}

TEST_F(WatcherTest, WithoutLongGapsNoLookIsDue) {
  EXPECT_EQ(watcher.due(), kTimeMax);
  watcher.look(now());
  EXPECT_TRUE(kept.records.empty());
}

}  // namespace
}  // namespace gpudiag
