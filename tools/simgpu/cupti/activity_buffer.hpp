// SPDX-License-Identifier: Apache-2.0
//
// A client's buffer while CUPTI owns it: records are appended by one writer, operations that were
// queued get their times when they end, and a flush takes it away.
//
//   request callback → ActivityBuffer → append() … complete() … → completed callback
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "spin_lock.hpp"

namespace simgpu::cupti {

/// One buffer from a client. append() and the accessors are for whoever holds the writer's lock;
/// the completion side is [any thread]. Aligned so that PendingRecord fits into one word.
class alignas(64) ActivityBuffer {
 public:
  /// `max_records` 0 means as many as fit, as in the request callback.
  ActivityBuffer(std::uint8_t* memory, std::size_t capacity, std::size_t max_records)
      : memory_(memory), capacity_(capacity), max_records_(max_records) {}

  /// Bytes of a buffer that are used at most: what PendingRecord can address.
  static constexpr std::size_t kMaxUsed = std::size_t{64} << 20;

  bool has_room(std::size_t bytes) const {
    return used_ + bytes <= std::min(capacity_, kMaxUsed) && (max_records_ == 0 || records_ < max_records_);
  }

  /// Copies a record in and returns where it lies. Precondition: has_room(bytes).
  std::uint8_t* append(const void* record, std::size_t bytes) {
    std::uint8_t* slot = memory_ + used_;
    std::memcpy(slot, record, bytes);
    used_ += bytes;
    ++records_;
    return slot;
  }

  /// Declares the record appended last unfinished: its times come later, by complete().
  // relaxed: the flush that reads the count holds the writer's lock, as the caller does.
  void expect_completion() { pending_.fetch_add(1, std::memory_order_relaxed); }

  /// True while a record waits for its times.
  // acquire: pairs with the release in complete(), so that a delivered record has its times.
  bool incomplete() const { return pending_.load(std::memory_order_acquire) != 0; }

  bool empty() const { return records_ == 0; }
  std::uint8_t* memory() const { return memory_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t used() const { return used_; }
  std::size_t records() const { return records_; }

  /// Marks the buffer full: its writer is done with it.
  // seq_cst: see complete(); one of the two sides must see the other.
  void retire() { retired_.store(true); }

  enum class Completion { kMorePending, kRetiredBufferDone, kLastOfSurrendered };

  /// Fills in a record by `fill(slot)` unless the client already has the buffer back, and counts
  /// it as finished. After kLastOfSurrendered nobody refers to this object and the caller deletes
  /// it; after the other two it may be gone at any moment.
  template <class Fill>
  Completion complete(std::uint8_t* slot, Fill&& fill) {
    // Whoever deletes the buffer takes this lock first, so it is whole until we let go.
    const std::lock_guard lock(completion_lock_);
    if (!surrendered_) {
      fill(slot);
    }
    // seq_cst against retire(): either we see the buffer retired or its writer sees none pending.
    const bool last = pending_.fetch_sub(1) == 1;
    if (last && surrendered_) {
      return Completion::kLastOfSurrendered;
    }
    return last && retired_.load() ? Completion::kRetiredBufferDone : Completion::kMorePending;
  }

  /// Takes the memory from under unfinished records, for a forced flush: from now on nobody
  /// writes there. Returns true if unfinished records still refer to this object.
  bool surrender() {
    const std::lock_guard lock(completion_lock_);
    surrendered_ = true;
    return pending_.load() != 0;
  }

 private:
  std::uint8_t* memory_;
  std::size_t capacity_;
  std::size_t max_records_;
  std::size_t used_ = 0;
  std::size_t records_ = 0;
  std::atomic<std::uint32_t> pending_{0};  // orders the times of records before their delivery
  std::atomic<bool> retired_{false};       // orders the last append before the last completion
  SpinLock completion_lock_;
  bool surrendered_ = false;  // guarded by completion_lock_
};

/// An unfinished record and its buffer; null when the record was not kept. Packs into the one
/// word that the core hands back with the finished operation.
struct PendingRecord {
  ActivityBuffer* buffer = nullptr;
  std::uint8_t* slot = nullptr;

  explicit operator bool() const { return buffer != nullptr; }

  /// The pointer has 6 zero bits below and 17 above; records begin at multiples of 8.
  std::uint64_t pack() const {
    if (buffer == nullptr) {
      return 0;
    }
    const auto offset = static_cast<std::uint64_t>(slot - buffer->memory());
    return (reinterpret_cast<std::uint64_t>(buffer) >> 6U << kOffsetBits) | offset >> 3U;
  }

  static PendingRecord unpack(std::uint64_t word) {
    if (word == 0) {
      return {};
    }
    auto* buffer = reinterpret_cast<ActivityBuffer*>(word >> kOffsetBits << 6U);
    return {buffer, buffer->memory() + ((word & kOffsetMask) << 3U)};
  }

 private:
  static constexpr unsigned kOffsetBits = 23;
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kOffsetBits) - 1;
};
static_assert(ActivityBuffer::kMaxUsed >> 3U == std::uint64_t{1} << 23);

}  // namespace simgpu::cupti
