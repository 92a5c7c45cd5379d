// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// The activity buffers. CUPTI takes them from here on whatever thread it likes, gives them back full,
// and the drain thread empties them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/time.hpp"

namespace gpudiag {

/// Small buffers, because a flush withholds a whole buffer for one unfinished record; some 450
/// records fit. CUPTI 13 takes one for each thread that calls CUDA.
inline constexpr std::size_t kActivityBufferBytes = 64 * 1024;

/// Memory comes from mmap, so no allocator of the job is entered; it is never given back, since CUPTI
/// may write into a buffer it holds even after everything has been stopped. Object and buffers must
/// live for ever.
class BufferPool {
 public:
  struct Filled {
    std::uint8_t* data = nullptr;
    std::size_t valid_bytes = 0;
  };

  /// At most `limit` buffers beside those that CUPTI holds, which may be one for each thread.
  explicit BufferPool(std::size_t limit);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A buffer, never null while memory can be had: where the limit is reached one that has been
  /// filled is sacrificed, and where CUPTI holds them all the limit is passed. [any thread]
  std::uint8_t* take() noexcept;
  /// CUPTI gives back `data` with records in its first `valid_bytes`. A pointer that is not one of
  /// ours is ignored. [any thread]
  void give_back(std::uint8_t* data, std::size_t valid_bytes) noexcept;

  /// What has been given back, in that order. Drain thread. Each must be recycled.
  std::vector<Filled> filled();
  void recycle(const Filled& buffer) noexcept;

  /// Gives up the buffers that CUPTI holds now: they went to somebody else with their records, or will
  /// never come back. CUPTI may still write into them. Those that come after all are used again; what is
  /// in them is not passed on. Drain thread. Returns how many.
  std::size_t abandon_held() noexcept;
  /// Grows with each buffer that CUPTI asks for. [any thread]
  std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

  /// Buffers that CUPTI holds now, and how many are filled and wait. [any thread]
  std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }
  /// When the buffer that CUPTI has held longest was taken; kTimeMax where it holds none.
  TimePoint oldest_held() const noexcept;
  std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  std::size_t made() const noexcept { return made_.load(std::memory_order_relaxed); }
  std::size_t limit() const noexcept { return limit_; }
  /// Bytes of records that were sacrificed since the last call.
  std::uint64_t take_sacrificed_bytes() noexcept { return sacrificed_.exchange(0, std::memory_order_relaxed); }

 private:
  enum class State : std::uint32_t { kAbsent, kFree, kHeld, kFilled, kDraining, kAbandoned };
  struct Slot {
    std::atomic<State> state{State::kAbsent};  // hands the buffer on; acquire and release throughout
    std::atomic<std::uint8_t*> data{nullptr};
    std::atomic<std::int64_t> taken_ns{0};
    std::size_t valid_bytes = 0;
    std::uint64_t order = 0;
  };

  std::uint8_t* claim(State from) noexcept;
  std::uint8_t* make() noexcept;
  Slot* slot_of(const std::uint8_t* data) noexcept;

  static constexpr std::size_t kSlots = 4096;
  std::size_t limit_;
  std::array<Slot, kSlots> slots_;
  // All relaxed: counters, and a hint where to look first; the slots' states do the ordering.
  std::atomic<std::size_t> made_{0};
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::size_t> hint_{0};
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> order_{0};
  std::atomic<std::uint64_t> sacrificed_{0};
};

}  // namespace gpudiag
