// SPDX-License-Identifier: Apache-2.0
#include "sources/nccl/nccl_calls.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "sources/host/now.hpp"
#include "sources/host/thread_log.hpp"
#include "sources/nccl/profiler_abi.h"

namespace gpudiag {
namespace {

std::atomic<std::uint64_t> g_broken{0};  // relaxed: a number to show

void copy_word(char (&to)[kNcclWord], const char* from) noexcept {
  if (from == nullptr) return;
  std::memcpy(to, from, strnlen(from, kNcclWord));
}

void log_call(const NcclCall& call) noexcept {
  static_assert(sizeof call <= kRangeTextKept);
  if (!host_log_on()) return;
  ThreadLog* log = ThreadLogs::mine();
  if (log == nullptr) return;
  HostMessage message;
  message.start = message.end = now();
  message.content = HostMessage::Content::kNcclCall;
  log->write(message, {reinterpret_cast<const char*>(&call), sizeof call});
}

// NCCL's payloads, by its own schemas: a communicator's number first (from 2.24 on), bytes, and what
// is left by function. Those of before lack the first.
template <typename Number>
Number read_at(const void* payload, std::size_t offset) noexcept {
  Number number{};
  std::memcpy(&number, static_cast<const std::byte*>(payload) + offset, sizeof number);
  return number;
}

enum class Rest : std::uint8_t { kNothing, kReduction, kRoot, kRootAndReduction };

struct Function {
  std::string_view name;
  Rest rest;
};
constexpr std::array kFunctions{
    Function{"ncclAllReduce", Rest::kReduction},     Function{"ncclAllGather", Rest::kNothing},
    Function{"ncclReduceScatter", Rest::kReduction}, Function{"ncclBroadcast", Rest::kRoot},
    Function{"ncclReduce", Rest::kRootAndReduction}, Function{"ncclAlltoAll", Rest::kNothing},
    Function{"ncclGather", Rest::kRoot},             Function{"ncclScatter", Rest::kRoot},
    Function{"ncclSend", Rest::kRoot},               Function{"ncclRecv", Rest::kRoot},
};

constexpr std::size_t rest_bytes(Rest rest) {
  switch (rest) {
    case Rest::kNothing: return 0;
    case Rest::kRootAndReduction: return 8;
    default: return 4;
  }
}

bool read_operation(const Function& function, const void* payload, std::size_t bytes, NcclCall& call) noexcept {
  const std::size_t rest = rest_bytes(function.rest);
  std::size_t at = 0;
  if (bytes >= 16 + rest) {
    call.communicator = read_at<std::uint64_t>(payload, 0);
    at = 8;
  } else if (bytes < 8 + rest) {
    return false;
  }
  call.amount = read_at<std::uint64_t>(payload, at);
  at += 8;
  if (function.rest == Rest::kRoot || function.rest == Rest::kRootAndReduction) {
    call.root = read_at<std::int32_t>(payload, at);
    at += 4;
  }
  if (function.rest == Rest::kReduction || function.rest == Rest::kRootAndReduction)
    call.reduction = read_at<std::int32_t>(payload, at);
  return true;
}

}  // namespace

std::string_view word_of(const char (&word)[kNcclWord]) noexcept { return {word, strnlen(word, kNcclWord)}; }

void take_nccl_event(const gpudiag_nccl_event& event) noexcept {
  if (event.size < sizeof event) {
    g_broken.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  NcclCall call;
  call.source = event.type == kNcclEventGroup ? NcclCall::Source::kLaunch : NcclCall::Source::kOperation;
  call.communicator = event.communicator;
  call.ranks = event.ranks;
  call.rank = event.rank;
  call.amount = event.count;
  call.sequence = event.sequence;
  call.root = event.root;
  call.channels = event.channels;
  copy_word(call.function, event.function);
  copy_word(call.datatype, event.datatype);
  copy_word(call.algorithm, event.algorithm);
  copy_word(call.protocol, event.protocol);
  log_call(call);
}

void take_nccl_range(std::string_view name, const void* payload, std::size_t bytes) noexcept {
  if (!name.starts_with("nccl")) return;
  NcclCall call;
  if (name == "ncclGroupStart" || name == "ncclGroupEnd") {
    call.source = name == "ncclGroupEnd" ? NcclCall::Source::kGroupEnd : NcclCall::Source::kGroupStart;
    return log_call(call);
  }
  if (payload == nullptr) return;
  const std::string_view plain = name.substr(4);
  std::memcpy(call.function, plain.data(), std::min(plain.size(), kNcclWord));
  if (name.starts_with("ncclCommInitRank")) {
    // Communicator, ranks, own rank, device.
    if (bytes < 20) return;
    call.source = NcclCall::Source::kCommunicator;
    call.communicator = read_at<std::uint64_t>(payload, 0);
    call.ranks = read_at<std::uint32_t>(payload, 8);
    call.rank = read_at<std::uint32_t>(payload, 12);
    return log_call(call);
  }
  if (name == "ncclCommSplit") {
    // Communicator, its parent, ranks, own rank, …
    if (bytes < 24) return;
    call.source = NcclCall::Source::kCommunicator;
    call.communicator = read_at<std::uint64_t>(payload, 0);
    call.ranks = read_at<std::uint32_t>(payload, 16);
    call.rank = read_at<std::uint32_t>(payload, 20);
    return log_call(call);
  }
  for (const Function& function : kFunctions)
    if (function.name == name && read_operation(function, payload, bytes, call)) return log_call(call);
}

std::uint64_t broken_nccl_events() noexcept { return g_broken.load(std::memory_order_relaxed); }

}  // namespace gpudiag
