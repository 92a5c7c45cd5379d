// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peer_link.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "fmt/format.h"
#include "session/peers/peer_state.hpp"

namespace gpudiag {
namespace {

constexpr std::uint32_t kMagic = 0x67706c31;
constexpr std::size_t kHead = 8;
// What a slow connection may have in hand; beyond it messages are dropped.
constexpr std::size_t kUnsentBytes = 4 * kPeerBytes;

struct Resolved {
  sockaddr_storage address{};
  socklen_t size = 0;
};

bool resolve(const std::string& text, int flags, Resolved& into) {
  std::string host;
  std::string port;
  if (!split_address(text, host, port)) return false;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found) != 0 || found == nullptr) return false;
  std::memcpy(&into.address, found->ai_addr, found->ai_addrlen);
  into.size = found->ai_addrlen;
  freeaddrinfo(found);
  return true;
}

int make_socket(int family) { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

}  // namespace

bool split_address(std::string_view address, std::string& host, std::string& port) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == address.size()) return false;
  std::string_view name = address.substr(0, colon);
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  host = name;
  port = address.substr(colon + 1);
  return port.find_first_not_of("0123456789") == std::string::npos && port.size() <= 5;
}

std::unique_ptr<PeerListener> PeerListener::open(const std::string& address, std::string& error) {
  Resolved at;
  if (!resolve(address, AI_PASSIVE, at)) {
    error = "no such address";
    return nullptr;
  }
  const int socket = make_socket(at.address.ss_family);
  const int yes = 1;
  if (socket >= 0) setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket >= 0 && bind(socket, reinterpret_cast<const sockaddr*>(&at.address), at.size) == 0 && listen(socket, 128) == 0)
    return std::unique_ptr<PeerListener>{new PeerListener{socket}};
  error = std::generic_category().message(errno);
  if (socket >= 0) close(socket);
  return nullptr;
}

PeerListener::~PeerListener() {
  for (const auto& [socket, text] : connections_) close(socket);
  close(socket_);
}

std::uint16_t PeerListener::port() const {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size) != 0) return 0;
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(at).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(at).sin_port);
}

std::vector<std::string> PeerListener::take() {
  std::vector<std::string> messages;
  for (int socket; connections_.size() < kConnections &&
                   (socket = accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;)
    connections_.emplace(socket, std::string{});
  std::string chunk(1u << 16, '\0');
  for (auto at = connections_.begin(); at != connections_.end();) {
    auto& [socket, text] = *at;
    bool good = true;
    for (;;) {
      const ssize_t got = recv(socket, chunk.data(), chunk.size(), 0);
      if (got > 0) text.append(chunk.data(), static_cast<std::size_t>(got));
      else good = got < 0 && (errno == EAGAIN || errno == EINTR);
      if (got <= 0 || text.size() > kUnsentBytes) break;
    }
    std::size_t from = 0;
    while (text.size() - from >= kHead) {
      std::uint32_t head[2];
      std::memcpy(head, text.data() + from, sizeof head);
      if (head[0] != kMagic || head[1] > kPeerBytes + 4096) {
        good = false;
        break;
      }
      if (text.size() - from < kHead + head[1]) break;
      messages.push_back(text.substr(from + kHead, head[1]));
      from += kHead + head[1];
    }
    text.erase(0, from);
    if (good) {
      ++at;
      continue;
    }
    close(socket);
    at = connections_.erase(at);
  }
  return messages;
}

struct PeerSender::Lookup {
  std::atomic<int> done{0};  ///< release: 1 with `at` set, -1 where there is no such address
  Resolved at;
};

PeerSender::PeerSender(const std::string& address) : lookup_{std::make_shared<Lookup>()} {
  try {
    std::thread([lookup = lookup_, address] {
      const bool found = resolve(address, 0, lookup->at);
      lookup->done.store(found ? 1 : -1, std::memory_order_release);
    }).detach();
  } catch (const std::system_error&) {
    lookup_->done.store(-1);
  }
}

PeerSender::~PeerSender() {
  if (socket_ >= 0) close(socket_);
}

void PeerSender::connect_now() {
  const sockaddr_storage& at = lookup_->at.address;
  socket_ = make_socket(at.ss_family);
  unsent_.clear();
  if (socket_ < 0) return;
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&at), lookup_->at.size) == 0 || errno == EINPROGRESS) return;
  close(socket_);
  socket_ = -1;
}

void PeerSender::flush() {
  while (socket_ >= 0 && !unsent_.empty()) {
    const ssize_t sent = ::send(socket_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      unsent_.erase(0, static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ENOTCONN) return;
    close(socket_);
    socket_ = -1;
  }
}

bool PeerSender::send(std::string_view message) {
  if (lookup_->done.load(std::memory_order_acquire) != 1) return false;
  if (socket_ < 0) connect_now();
  flush();
  if (socket_ < 0 || unsent_.size() + message.size() > kUnsentBytes) return false;
  const std::uint32_t head[2] = {kMagic, static_cast<std::uint32_t>(message.size())};
  unsent_.append(reinterpret_cast<const char*>(head), sizeof head);
  unsent_ += message;
  flush();
  return socket_ >= 0;
}

}  // namespace gpudiag
