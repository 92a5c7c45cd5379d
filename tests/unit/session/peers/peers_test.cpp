// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peers.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "peer_case.hpp"

namespace gpudiag {
namespace {

OptionSource environment(std::map<std::string, std::string, std::less<>> variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional{found->second};
  };
}

TEST(PeerIdentity, ComesFromTorchrun) {
  const auto who = identity_of_launcher(environment({{"WORLD_SIZE", "4"},
                                                     {"LOCAL_RANK", "1"},
                                                     {"MASTER_ADDR", "a"},
                                                     {"MASTER_PORT", "29500"},
                                                     {"TORCHELASTIC_RESTART_COUNT", "2"}}),
                                        3);
  ASSERT_TRUE(who);
  EXPECT_EQ(who->rank, 3u);
  EXPECT_EQ(who->world_size, 4u);
  EXPECT_EQ(who->local_rank, 1u);
  EXPECT_EQ(who->restart, 2u);
  EXPECT_EQ(who->job, "MASTER_ADDR=a;MASTER_PORT=29500;");
}

TEST(PeerIdentity, IsTheSameForAllRanksOfAJobWhateverTheirFolders) {
  const auto zero = identity_of_launcher(environment({{"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "7"}, {"GPUDIAG_DIR", "a"}}), 0);
  const auto one = identity_of_launcher(environment({{"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "7"}, {"GPUDIAG_DIR", "b"}}), 1);
  ASSERT_TRUE(zero && one);
  EXPECT_EQ(zero->job, one->job);
}

TEST(PeerIdentity, AJobOfOneRankOrWithoutANameHasNoPeers) {
  EXPECT_FALSE(identity_of_launcher(environment({{"WORLD_SIZE", "1"}, {"MASTER_PORT", "1"}}), 0));
  EXPECT_FALSE(identity_of_launcher(environment({{"WORLD_SIZE", "2"}}), 0));
  EXPECT_FALSE(identity_of_launcher(environment({{"MASTER_PORT", "1"}}), 0));
  EXPECT_FALSE(identity_of_launcher(environment({{"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}), 2));
}

RankIdentity identity(std::uint32_t rank, const std::string& job) {
  RankIdentity who;
  who.rank = rank;
  who.world_size = 2;
  who.job = job;
  who.host = "a";
  who.pid = static_cast<std::uint64_t>(getpid());
  return who;
}

TEST(Peers, RankZeroNamesTheSlowestOfItsHost) {
  const std::string job = "test " + std::to_string(getpid());
  Settings settings;
  Peers zero{settings, identity(0, job)};
  Peers one{settings, identity(1, job)};
  const DurationNs late = milliseconds(41);
  const auto state = [&](std::uint32_t rank) { return [&, rank] { return peer(rank, 2, 12, rank == 1 ? late : DurationNs{}, late).state; }; };
  const TimePoint at = TimePoint{} + seconds(100);
  EXPECT_TRUE(one.tick(at, state(1)).empty());
  const auto lines = zero.tick(at, state(0));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].text.starts_with("slowest rank 1: +41 ms data_loading")) << lines[0].text;
  one.leave(at, state(1)());
  zero.leave(at, state(0)());
}

TEST(Peers, RanksOfOtherHostsComeByTheAddress) {
  std::string error;
  std::string address;
  {
    const auto free_port = PeerListener::open("127.0.0.1:0", error);
    address = "127.0.0.1:" + std::to_string(free_port->port());
  }
  Settings settings;
  settings.peers = address;
  RankIdentity who_zero = identity(0, "job over hosts " + std::to_string(getpid()));
  RankIdentity who_one = who_zero;
  who_one.rank = 1;
  Peers zero{settings, who_zero};
  const DurationNs late = milliseconds(41);
  TimePoint at = TimePoint{} + seconds(100);
  EXPECT_TRUE(zero.tick(at, [&] { return peer(0, 2, 12, {}, late).state; }).empty());
  // Another host has another memory; here the world's size makes it another one.
  PeerSender sender{address};
  PeerState far = peer(1, 2, 12, late, late).state;
  far.summary.who = who_one;
  std::vector<PeerLine> lines;
  for (int i = 0; i < 2'000 && lines.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    far.at += seconds(1);
    at += seconds(1);
    sender.send(encode(far));
    lines = zero.tick(at, [&] { return peer(0, 2, 12, {}, late).state; });
  }
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines[0].text.starts_with("slowest rank 1: +41 ms")) << lines[0].text;
}

TEST(Peers, StatesOfAnotherJobAreNotListenedTo) {
  const std::string job = "mine " + std::to_string(getpid());
  Settings settings;
  Peers zero{settings, identity(0, job)};
  const DurationNs late = milliseconds(41);
  const TimePoint at = TimePoint{} + seconds(100);
  // As if two names of jobs had one hash: rank 1 of another job in the same memory.
  std::string error;
  const auto memory = PeerMemory::open(peer_memory_name(job + "restart=0;size=2"), 2, 1, error);
  ASSERT_TRUE(memory) << error;
  PeerState other = peer(1, 2, 12, late, late).state;
  other.summary.who = identity(1, "another");
  memory->write(encode(other));
  EXPECT_TRUE(zero.tick(at, [&] { return peer(0, 2, 12, {}, late).state; }).empty());
  other.summary.who = identity(1, job);
  other.at = at;
  memory->write(encode(other));
  EXPECT_EQ(zero.tick(at + seconds(1), [&] { return peer(0, 2, 13, {}, late).state; }).size(), 1u);
}

TEST(Peers, ANextTickBeforeASecondIsNone) {
  Settings settings;
  Peers zero{settings, identity(0, "ticks " + std::to_string(getpid()))};
  int filled = 0;
  const auto fill = [&] {
    ++filled;
    return PeerState{};
  };
  const TimePoint at = TimePoint{} + seconds(100);
  zero.tick(at, fill);
  zero.tick(at + milliseconds(999), fill);
  EXPECT_EQ(filled, 1);
  zero.tick(at + seconds(1), fill);
  EXPECT_EQ(filled, 2);
}

}  // namespace
}  // namespace gpudiag
