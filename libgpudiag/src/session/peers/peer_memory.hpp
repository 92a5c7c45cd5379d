// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: the ranks of one job, while it runs.
// The ranks of one host share a piece of memory: a slot for each rank of the job, which that rank alone
// writes and all may read. No lock, so a rank that dies or hangs holds up nobody.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpudiag {

/// Of one rank, whose slot this process has.
class PeerMemory {
 public:
  /// The memory called `name`, made where it is not there yet, with `rank`'s slot in it. Null with `error`
  /// said where that fails, or another living process has the slot.
  static std::unique_ptr<PeerMemory> open(const std::string& name, std::uint32_t ranks, std::uint32_t rank,
                                          std::string& error);
  /// Gives the slot back; the last of the processes that are still there removes the name.
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// What the others see from now on. A few microseconds for a few kilobytes.
  void write(std::string_view bytes);
  /// The newest whole contents of a slot; nothing where it is empty, or its writer died while writing.
  std::optional<std::string> read(std::uint32_t rank) const;
  /// Ranks of this host that have, or had, a slot.
  std::vector<std::uint32_t> present() const;
  /// Whether the process that has the slot lives. One that has given it back counts as gone.
  bool lives(std::uint32_t rank) const;

  /// Removes names of memory whose processes are all gone: what killed jobs left behind.
  static void remove_orphans();

  static constexpr std::uint32_t kLocalRanks = 4096;  ///< of one host, at the most

 private:
  struct Header;
  struct Slot;
  PeerMemory(std::string name, void* memory, std::uint32_t ranks, std::uint32_t rank);
  Header& header() const;
  Slot& slot(std::uint32_t rank) const;
  bool take();

  std::string name_;
  void* memory_;
  std::uint32_t ranks_;
  std::uint32_t rank_;
};

/// "/gpudiag-…": a name of POSIX shared memory for the user and job that `key` stands for.
std::string peer_memory_name(std::string_view key);

}  // namespace gpudiag
