// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: the ranks of one job, while it runs.
// States of ranks between hosts: one connection from each host to rank 0, one way. Nothing here waits:
// what cannot be sent at once is dropped, for the next state says all that it did.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gpudiag {

/// "host:port", "[::1]:port"; false where it is neither.
bool split_address(std::string_view address, std::string& host, std::string& port);

/// Rank 0's end.
class PeerListener {
 public:
  /// Null with `error` said.
  static std::unique_ptr<PeerListener> open(const std::string& address, std::string& error);
  ~PeerListener();
  PeerListener(const PeerListener&) = delete;
  PeerListener& operator=(const PeerListener&) = delete;

  /// Messages that have come since the last call, each whole. Whoever sends anything else is cut off.
  std::vector<std::string> take();
  std::uint16_t port() const;

  static constexpr std::size_t kConnections = 4096;

 private:
  explicit PeerListener(int socket) : socket_{socket} {}

  int socket_;
  std::map<int, std::string> connections_;  ///< with what has come of a message
};

/// The other end. The name is looked up by a thread of its own, which may wait.
class PeerSender {
 public:
  explicit PeerSender(const std::string& address);
  ~PeerSender();
  PeerSender(const PeerSender&) = delete;
  PeerSender& operator=(const PeerSender&) = delete;

  /// False where it could not be sent; the next call tries again.
  bool send(std::string_view message);

 private:
  struct Lookup;
  void connect_now();
  void flush();

  std::shared_ptr<Lookup> lookup_;
  int socket_ = -1;
  std::string unsent_;
};

}  // namespace gpudiag
