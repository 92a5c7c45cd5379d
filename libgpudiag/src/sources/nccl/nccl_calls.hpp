// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// What NCCL tells of its operations on the thread that asks for them: by the NVTX ranges around its
// functions, which it makes unasked, and as a profiler plugin, where it has been told to load us.
// Either goes into the thread's log; nccl_join.hpp puts them together with the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sources/nccl/forwarded.h"

namespace gpudiag {

/// Texts of at most this length are kept; NCCL's are shorter.
inline constexpr std::size_t kNcclWord = 16;

/// Plain data: it travels through the thread's log as bytes. Words end with 0 where they are shorter.
struct NcclCall {
  enum class Source : std::uint8_t {
    kRange,         ///< an NVTX range around the function: comes before the launch
    kLaunch,        ///< the profiler: a kernel was launched, whose operations follow
    kOperation,     ///< the profiler: one of them
    kCommunicator,  ///< an NVTX range: a communicator was made; `ranks` and `rank` are known
    kGroupStart,    ///< an NVTX range: what follows is launched at the group's end
    kGroupEnd,
  };
  std::uint64_t communicator = 0;  ///< 0: not told (NCCL before 2.24)
  std::uint64_t amount = 0;        ///< kRange: bytes of one message; kOperation: elements
  std::uint64_t sequence = 0;
  std::uint32_t ranks = 0;         ///< 0: not told
  std::uint32_t rank = 0;
  std::int32_t root = -1;          ///< or the other rank of a transfer; -1: not told
  std::uint32_t channels = 0;
  std::int32_t reduction = -1;     ///< as ncclRedOp_t; -1: not told
  Source source = Source::kRange;
  char function[kNcclWord] = {};   ///< "AllReduce", "Send", …
  char datatype[kNcclWord] = {};   ///< "ncclFloat32"
  char algorithm[kNcclWord] = {};
  char protocol[kNcclWord] = {};
};

/// The text of a word.
std::string_view word_of(const char (&word)[kNcclWord]) noexcept;

/// An event of the profiler interface, on NCCL's thread. [hot]
void take_nccl_event(const gpudiag_nccl_event& event) noexcept;
/// NCCL's own NVTX range `name` ("ncclAllReduce") with its payload, null where there is none, at the
/// range's begin or end; ranges that are no operation, communicator or group are passed over. [hot]
void take_nccl_range(std::string_view name, const void* payload, std::size_t bytes) noexcept;

/// Events of the profiler interface that could not be read. [any thread]
std::uint64_t broken_nccl_events() noexcept;

}  // namespace gpudiag
