// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a communicator share: a piece of shared memory, gone from the file system as
// soon as all have found it, so that nothing is left behind however they end.
//
// ncclCommInitRank → **Segment** ← worker threads of all ranks
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace simgpu::nccl {

constexpr std::size_t kMovedBytes = 64 * 1024;  // of each rank's input that really move
constexpr std::size_t kRing = 4;                // operations a rank may be ahead of the slowest

// A rank's part in one collective.
struct Post {
  std::int64_t start_ns;  // CLOCK_MONOTONIC, one clock for all processes of the host
  std::int64_t extra_ns;  // delay asked for on this rank
  std::uint64_t signature;  // what is done to how much: must be the same for all
};

// Counters count from 1; every one is written by one rank only, with release.
struct RankPart {
  std::atomic<std::uint32_t> present;
  std::atomic<std::uint64_t> posted;    // newest post in the ring
  std::atomic<std::uint64_t> consumed;  // newest collective it is done with
  std::array<Post, kRing> posts;
  // ncclCommSplit and ncclCommShrink, by the host.
  std::atomic<std::uint64_t> split_posted;
  std::atomic<std::uint64_t> split_consumed;
  std::int32_t color;
  std::int32_t key;
  alignas(64) std::array<std::array<std::byte, kMovedBytes>, kRing> data;
};

// Messages from one rank to another.
struct PairPart {
  std::atomic<std::uint64_t> sent;      // by the sender: data and start are there
  std::atomic<std::uint64_t> awaited;   // by the receiver: its start is there
  std::atomic<std::uint64_t> received;  // by the receiver: data and start are read
  std::atomic<std::uint64_t> settled;   // by the sender: the receiver's start is read
  std::array<std::int64_t, kRing> send_start_ns;
  std::array<std::int64_t, kRing> receive_start_ns;
  std::array<std::uint64_t, kRing> bytes;
  alignas(64) std::array<std::array<std::byte, kMovedBytes>, kRing> data;
};

class Segment {
 public:
  // Finds or makes the memory called `name` for `ranks` ranks and enters `rank`. Null where the
  // system refuses, or the rank is taken.
  static Segment* attach(const std::string& name, std::uint32_t ranks, std::uint32_t rank);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  bool complete() const;
  RankPart& rank(std::uint32_t rank) { return parts_[rank]; }
  PairPart& pair(std::uint32_t from, std::uint32_t to) { return pairs_[from * ranks_ + to]; }

  // Take the ticket, look whether what you need is there, and sleep() if not: what changes in
  // between wakes you at once.
  std::uint32_t ticket() const;
  void sleep(std::uint32_t ticket) const;  // 50 ms at most
  // After every change that others wait for.
  void wake();

 private:
  struct Header;
  Segment(void* memory, std::size_t bytes, std::uint32_t ranks);

  Header* header_;
  RankPart* parts_;
  PairPart* pairs_;
  std::size_t bytes_;
  std::uint32_t ranks_;
};

// Name for a communicator whose id was made by process `owner`.
std::string segment_name(std::int32_t owner, std::uint64_t token);
// Removes what processes that are gone left behind while their ranks were looking for each other.
void remove_orphans();

}  // namespace simgpu::nccl
