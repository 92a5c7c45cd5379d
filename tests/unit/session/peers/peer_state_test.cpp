// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peer_state.hpp"

#include <gtest/gtest.h>

#include "peer_case.hpp"

namespace gpudiag {
namespace {

TEST(PeerState, ComesBackAsItWas) {
  PeerState state = peer(2, 3, 5, milliseconds(4), milliseconds(4)).state;
  state.doing = "DataLoader.__next__";
  state.doing_for = seconds(3);
  state.groups.push_back(progress(7, seconds(1)));
  const auto back = decode_peer(encode(state));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->summary.who.rank, 2u);
  EXPECT_EQ(back->summary.who.pid, 1002u);
  EXPECT_EQ(back->summary.who.job, "j");
  EXPECT_EQ(back->summary.abouts, state.summary.abouts);
  EXPECT_EQ(back->summary.uses, state.summary.uses);
  EXPECT_EQ(back->summary.iterations, state.summary.iterations);
  EXPECT_EQ(back->groups, state.groups);
  EXPECT_EQ(back->doing, "DataLoader.__next__");
  EXPECT_EQ(back->doing_for, seconds(3));
  EXPECT_EQ(back->at, state.at);
  EXPECT_FALSE(back->left);
}

TEST(PeerState, KeepsTheNewestIterations) {
  const auto back = decode_peer(encode(peer(0, 2, 90, {}, {}).state));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->summary.iterations.size(), kPeerIterations);
  EXPECT_EQ(back->summary.iterations.back().index, 89u);
  EXPECT_EQ(back->summary.iterations.front().index, 90 - kPeerIterations);
}

TEST(PeerState, AnyByteThatIsWrongIsNoticed) {
  const std::string whole = encode(peer(1, 2, 3, {}, {}).state);
  for (std::size_t i = 0; i < whole.size(); i += 7) {
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ 0x20);
    EXPECT_FALSE(decode_peer(broken)) << i;
  }
  EXPECT_FALSE(decode_peer(""));
  EXPECT_FALSE(decode_peer(whole.substr(0, whole.size() / 2)));
}

TEST(PeerState, NeverOutgrowsItsPlace) {
  PeerState state = peer(0, 2, 12, {}, {}).state;
  RankSummary& summary = state.summary;
  summary.uses.resize(12 * 400);
  for (std::size_t i = 0; i < summary.iterations.size(); ++i) {
    summary.iterations[i].first_use = static_cast<std::uint32_t>(i * 400);
    summary.iterations[i].use_count = 400;
  }
  const std::string bytes = encode(state);
  EXPECT_LE(bytes.size(), kPeerBytes);
  const auto back = decode_peer(bytes);
  ASSERT_TRUE(back);
  EXPECT_GE(back->summary.iterations.size(), 4u);
  EXPECT_EQ(back->summary.iterations.back().left_out, 400 - kPeerUsesKept);
}

}  // namespace
}  // namespace gpudiag
