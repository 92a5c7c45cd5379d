// SPDX-License-Identifier: Apache-2.0
// The texts of /proc and of cgroups, as kernels write them, and what is made of them.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include <cstring>
#include <string>

#include "sources/host/blocked_call.hpp"
#include "sources/host/children.hpp"
#include "sources/host/processors.hpp"
#include "sources/host/thread_look.hpp"

namespace gpudiag {
namespace {

/// Descriptor 3 is a socket, 4 a pipe, 5 a file; address 0x1000 holds `memory`.
struct BlockedCallTest : ::testing::Test {
  std::string memory;
  ProcessView view{[](int descriptor) {
                     switch (descriptor) {
                       case 3: return Descriptor::kSocket;
                       case 4: return Descriptor::kPipe;
                       case 5: return Descriptor::kFile;
                       default: return Descriptor::kUnknown;
                     }
                   },
                   [this](std::uint64_t address, void* into, std::size_t bytes) {
                     if (address != 0x1000 || bytes > memory.size()) return false;
                     std::memcpy(into, memory.data(), bytes);
                     return true;
                   }};

  HostState state_in(long call, const std::string& arguments) {
    const auto found = blocked_call(std::to_string(call) + " " + arguments + " 0x7ffe 0x7f55\n", view);
    return found ? found->state : HostState::kGone;
  }
};

TEST_F(BlockedCallTest, ARunningThreadIsReady) {
  EXPECT_EQ(blocked_call("running\n", view), (BlockedCall{HostState::kReady, {}}));
}

TEST_F(BlockedCallTest, OutsideOfACallAPageIsFetched) {
  EXPECT_EQ(blocked_call("-1 0x7ffe 0x7f55\n", view)->state, HostState::kFault);
}

TEST_F(BlockedCallTest, ATextThatCannotBeReadSaysNothing) {
  EXPECT_FALSE(blocked_call("", view).has_value());
  EXPECT_FALSE(blocked_call("something else\n", view).has_value());
}

TEST_F(BlockedCallTest, ACallThatNobodyKnowsIsUnknown) {
  EXPECT_EQ(state_in(9999, "0x3 0x0 0x0"), HostState::kUnknown);
}

TEST_F(BlockedCallTest, AFutexIsALock) { EXPECT_EQ(state_in(SYS_futex, "0x1000 0x80 0x0"), HostState::kLock); }

TEST_F(BlockedCallTest, WhatAReadWaitsForIsWhatItReadsFrom) {
  EXPECT_EQ(state_in(SYS_read, "0x3 0x1000 0x10"), HostState::kNetwork);
  EXPECT_EQ(state_in(SYS_read, "0x4 0x1000 0x10"), HostState::kPipe);
  EXPECT_EQ(state_in(SYS_read, "0x5 0x1000 0x10"), HostState::kDisk);
  EXPECT_EQ(state_in(SYS_read, "0x6 0x1000 0x10"), HostState::kUnknown);
}

TEST_F(BlockedCallTest, AWriteToStandardOutputOrErrorIsTheLog) {
  EXPECT_EQ(state_in(SYS_write, "0x1 0x1000 0x10"), HostState::kLog);
  EXPECT_EQ(state_in(SYS_write, "0x2 0x1000 0x10"), HostState::kLog);
  EXPECT_EQ(state_in(SYS_write, "0x4 0x1000 0x10"), HostState::kPipe);
}

TEST_F(BlockedCallTest, FsyncIsTheDiskAndRecvTheNetworkWhateverTheDescriptor) {
  EXPECT_EQ(state_in(SYS_fsync, "0x6 0x0 0x0"), HostState::kDisk);
  EXPECT_EQ(state_in(SYS_recvfrom, "0x6 0x1000 0x1"), HostState::kNetwork);
}

TEST_F(BlockedCallTest, APollWaitsForASocketIfOneIsAmongWhatItPolls) {
  const pollfd polled[2] = {{4, POLLIN, 0}, {3, POLLIN, 0}};
  memory.assign(reinterpret_cast<const char*>(polled), sizeof polled);
  EXPECT_EQ(state_in(SYS_ppoll, "0x1000 0x2 0x0"), HostState::kNetwork);
  EXPECT_EQ(state_in(SYS_ppoll, "0x1000 0x1 0x0"), HostState::kPipe);
}

TEST_F(BlockedCallTest, APollWhoseListCannotBeReadIsUnknown) {
  EXPECT_EQ(state_in(SYS_ppoll, "0x2000 0x1 0x0"), HostState::kUnknown);
}

TEST_F(BlockedCallTest, APollOfNothingSleeps) { EXPECT_EQ(state_in(SYS_ppoll, "0x0 0x0 0x0"), HostState::kAsleep); }

TEST_F(BlockedCallTest, ASelectWaitsForWhatItsSetHolds) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(3, &set);
  memory.assign(reinterpret_cast<const char*>(&set), sizeof set);
  EXPECT_EQ(state_in(SYS_pselect6, "0x4 0x1000 0x0"), HostState::kNetwork);
}

TEST(Schedstat, HoldsTimeOnAProcessorTimeWithoutOneAndArrivals) {
  const ThreadCounts counts = counts_of_schedstat("2500000 40892 17\n");
  EXPECT_EQ(counts.running, DurationNs{2'500'000});
  EXPECT_EQ(counts.queued, DurationNs{40'892});
  EXPECT_EQ(counts.arrivals, 17u);
  EXPECT_EQ(counts_of_schedstat(""), ThreadCounts{});
}

TEST(Stat, TheCommandMayHoldParenthesesAndBlanks) {
  const std::string stat = "77 (a) R (b) D 1 77 77 0 -1 4194304 102 0 0 0 0 0 0 0 20 0 1 0 1238389 2998272 414";
  EXPECT_EQ(state_of_stat(stat)->state, HostState::kDisk);
  EXPECT_EQ(birth_of_stat(stat), 1'238'389u);
  EXPECT_FALSE(state_of_stat("").has_value());
  EXPECT_FALSE(birth_of_stat("77 (a) D 1").has_value());
}

ThreadLook look_at(TimePoint at, HostState state, DurationNs running, DurationNs queued, std::uint64_t arrivals) {
  return {at, {running, queued, arrivals}, {state, {}}, true};
}

TEST(Sample, HoldsWhatWasCountedSinceTheLookBefore) {
  const Record sample = sample_between(look_at({1000}, HostState::kLock, {300}, {20}, 4),
                                       look_at({2000}, HostState::kReady, {900}, {70}, 5), ThreadId{7});
  EXPECT_EQ(sample.kind, RecordKind::kHostSample);
  EXPECT_EQ(sample.interval(), (Interval{{1000}, {2000}}));
  EXPECT_EQ(sample.value, 600u);
  EXPECT_EQ(sample.value2, 50u);
  EXPECT_EQ(sample.state, HostState::kReady);
}

TEST(Sample, AWaitForAProcessorThatGoesOnCountsUpToNow) {
  const Record sample = sample_between(look_at({1000}, HostState::kReady, {300}, {20}, 4),
                                       look_at({2000}, HostState::kReady, {400}, {20}, 4), ThreadId{7});
  EXPECT_EQ(sample.value, 100u);
  EXPECT_EQ(sample.value2, 900u);
}

TEST(Sample, WhatBeganBeforeTheLookBeforeDoesNotExceedTheTimeBetweenTheTwo) {
  const Record sample = sample_between(look_at({1000}, HostState::kReady, {300}, {20}, 4),
                                       look_at({2000}, HostState::kReady, {700}, {5020}, 5), ThreadId{7});
  EXPECT_EQ(sample.value, 400u);
  EXPECT_EQ(sample.value2, 600u);
}

TEST(Sample, WhatCouldNotBeReadIsNothing) {
  const ThreadLook blind{{2000}, {}, {HostState::kLock, {}}, true};
  const Record sample = sample_between({{1000}, {}, {HostState::kLock, {}}, true}, blind, ThreadId{7});
  EXPECT_EQ(sample.value, 0u);
  EXPECT_EQ(sample.value2, 0u);
}

constexpr std::string_view kStat =
    "cpu  400 0 100 500 20 0 5 5 0 0\n"
    "cpu0 300 0 50 100 10 0 5 5 0 0\n"
    "cpu1 100 0 50 400 10 0 0 0 0 0\n"
    "intr 123456 0 0\n";

TEST(ProcessorTicksOfStat, AreThoseOfTheProcessorsThatTheJobMayUse) {
  EXPECT_EQ(ticks_of_stat(kStat, {0}), (ProcessorTicks{110, 470}));
  EXPECT_EQ(ticks_of_stat(kStat, {0, 1}), (ProcessorTicks{520, 1030}));
  EXPECT_FALSE(ticks_of_stat(kStat, {7}).has_value());
  EXPECT_FALSE(ticks_of_stat("", {0}).has_value());
}

TEST(Throttling, IsReadFromBothVersionsOfCgroups) {
  EXPECT_EQ(throttled_of("usage_usec 5\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1500\n"), microseconds(1500));
  EXPECT_EQ(throttled_of("nr_periods 3\nnr_throttled 2\nthrottled_time 1500\n"), DurationNs{1500});
  EXPECT_FALSE(throttled_of("usage_usec 5\n").has_value());
}

TEST(CgroupFiles, ThePathOfTheProcessComesBeforeTheRoot) {
  EXPECT_EQ(cpu_stat_files("0::/job/1\n", "/c"),
            (std::vector<std::string>{"/c/job/1/cpu.stat", "/c/unified/job/1/cpu.stat", "/c/cpu.stat",
                                      "/c/unified/cpu.stat"}));
  EXPECT_EQ(cpu_stat_files("4:memory:/m\n3:cpu,cpuacct:/job\n", "/c"),
            (std::vector<std::string>{"/c/cpu/job/cpu.stat", "/c/cpu,cpuacct/job/cpu.stat", "/c/cpu/cpu.stat",
                                      "/c/cpu,cpuacct/cpu.stat"}));
  EXPECT_TRUE(cpu_stat_files("", "/c").empty());
}

TEST(ChildrenFile, IsAListOfNumbers) {
  EXPECT_EQ(children_of("12 345 6 "), (std::vector<std::uint32_t>{12, 345, 6}));
  EXPECT_TRUE(children_of("").empty());
}

// Where nothing can be read nothing is known, and nothing is wrong.
TEST(HiddenProc, EachReaderFindsNothing) {
  EXPECT_FALSE(Children{"/nonexistent"}.list({1}).has_value());
  Processors processors{"/nonexistent", "/nonexistent"};
  EXPECT_FALSE(processors.look({0}).known);
  EXPECT_FALSE(processors.look({200'000'000}).known);
  const ThreadLook look = ThreadLooker{"/nonexistent"}.look_at_thread(0x7fff'ffff, {});
  EXPECT_FALSE(look.alive);
  EXPECT_EQ(look.held, BlockedCall{});
}

}  // namespace
}  // namespace gpudiag
