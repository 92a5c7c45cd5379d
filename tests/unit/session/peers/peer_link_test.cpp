// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peer_link.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

namespace gpudiag {
namespace {

/// Until `done`, for a long time at the most.
bool eventually(const std::function<bool()>& done) {
  for (int i = 0; i < 2'000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

std::string address_of(const PeerListener& listener) { return "127.0.0.1:" + std::to_string(listener.port()); }

TEST(PeerLink, AddressesAreAHostAndAPort) {
  std::string host;
  std::string port;
  EXPECT_TRUE(split_address("node-1:29400", host, port));
  EXPECT_EQ(host, "node-1");
  EXPECT_EQ(port, "29400");
  EXPECT_TRUE(split_address("[::1]:80", host, port));
  EXPECT_EQ(host, "::1");
  EXPECT_FALSE(split_address("node-1", host, port));
  EXPECT_FALSE(split_address("node-1:", host, port));
  EXPECT_FALSE(split_address("node-1:http", host, port));
}

TEST(PeerLink, MessagesArriveWholeAndInOrder) {
  std::string error;
  const auto listener = PeerListener::open("127.0.0.1:0", error);
  ASSERT_TRUE(listener) << error;
  PeerSender sender{address_of(*listener)};
  const std::string large(50'000, 'x');
  std::vector<std::string> got;
  ASSERT_TRUE(eventually([&] { return sender.send("first"); }));
  ASSERT_TRUE(eventually([&] {
    for (auto& text : listener->take()) got.push_back(text);
    return !got.empty();
  }));
  EXPECT_EQ(got[0], "first");
  ASSERT_TRUE(sender.send(large));
  ASSERT_TRUE(sender.send("last"));
  ASSERT_TRUE(eventually([&] {
    for (auto& text : listener->take()) got.push_back(text);
    return got.back() == "last";
  }));
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[1], large);
}

TEST(PeerLink, WhereNobodyListensNothingHappens) {
  std::string error;
  std::string address;
  {
    const auto listener = PeerListener::open("127.0.0.1:0", error);
    address = address_of(*listener);
  }
  PeerSender sender{address};
  for (int i = 0; i < 50; ++i) sender.send("x");
  PeerSender nowhere{"no.such.host.invalid:1"};
  EXPECT_FALSE(nowhere.send("x"));
}

TEST(PeerLink, AListenerThatCameLateIsFound) {
  std::string error;
  std::string address;
  {
    const auto listener = PeerListener::open("127.0.0.1:0", error);
    address = address_of(*listener);
  }
  PeerSender sender{address};
  for (int i = 0; i < 20; ++i) sender.send("lost");
  const auto listener = PeerListener::open(address, error);
  ASSERT_TRUE(listener) << error;
  EXPECT_TRUE(eventually([&] {
    sender.send("found");
    const auto got = listener->take();
    return !got.empty() && got.back() == "found";
  }));
}

TEST(PeerLink, WhoeverSendsSomethingElseIsCutOff) {
  std::string error;
  const auto listener = PeerListener::open("127.0.0.1:0", error);
  const int stranger = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(listener->port());
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  ASSERT_EQ(connect(stranger, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  const std::string noise = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(send(stranger, noise.data(), noise.size(), MSG_NOSIGNAL), static_cast<ssize_t>(noise.size()));
  char byte = 0;
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(listener->take().empty());
    const ssize_t got = recv(stranger, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }));
  close(stranger);
}

}  // namespace
}  // namespace gpudiag
