// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// What a thread is held up in, by the system call that /proc/<pid>/task/<tid>/syscall shows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "record/record.hpp"

namespace gpudiag {

/// What a descriptor of the looked-at process is.
enum class Descriptor : std::uint8_t { kUnknown, kSocket, kPipe, kFile };

/// How the looked-at process can be asked; tests put their own in its place.
struct ProcessView {
  std::function<Descriptor(int)> descriptor;
  /// Copies of its memory; false where that cannot be had.
  std::function<bool(std::uint64_t address, void* into, std::size_t bytes)> memory;
};

struct BlockedCall {
  HostState state = HostState::kUnknown;
  std::string_view name;  ///< for people; static storage; empty where nothing is known

  bool operator==(const BlockedCall&) const = default;
};

/// `text` of the file; nothing where it says nothing (it is empty or not of the form we know).
std::optional<BlockedCall> blocked_call(std::string_view text, const ProcessView& view);

/// A view of the process `pid` of this machine. Whether its memory can be read is for the kernel to
/// say; no call of these waits for a file system.
ProcessView view_of(std::uint32_t pid);

}  // namespace gpudiag
