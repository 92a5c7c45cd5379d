// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// A ring of bytes between one thread of the job and the drain thread. Messages of any length lie in
// it whole, so the reader needs no copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gpudiag {

/// One producer, one consumer, both wait-free. Storage belongs to the caller, is 8-byte aligned and a
/// power of two long.
class SpscRing {
 public:
  SpscRing(std::byte* storage, std::uint32_t capacity) noexcept : storage_{storage}, capacity_{capacity} {}
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  /// Appends one message made of two parts; false, and nothing written, where it does not fit.
  /// [hot] Producer only.
  bool push(const void* head, std::uint32_t head_bytes, const void* tail, std::uint32_t tail_bytes) noexcept {
    const std::uint32_t size = kHeader + rounded(head_bytes + tail_bytes);
    const std::uint64_t written = written_.load(std::memory_order_relaxed);  // ours alone to change
    // acquire: what the consumer has read must be read before we overwrite it.
    const std::uint64_t free = capacity_ - (written - read_.load(std::memory_order_acquire));
    const auto at = static_cast<std::uint32_t>(written & (capacity_ - 1));
    const std::uint32_t to_end = capacity_ - at;
    const std::uint32_t skipped = size <= to_end ? 0 : to_end;
    if (free < std::uint64_t{size} + skipped) return false;
    if (skipped != 0) put_length(at, kSkip);
    std::byte* place = storage_ + (skipped != 0 ? 0 : at);
    put_length(static_cast<std::uint32_t>(place - storage_), head_bytes + tail_bytes);
    std::memcpy(place + kHeader, head, head_bytes);
    if (tail_bytes != 0) std::memcpy(place + kHeader + head_bytes, tail, tail_bytes);
    // release: the message must be whole before the consumer sees it counted.
    written_.store(written + skipped + size, std::memory_order_release);
    return true;
  }

  /// Calls `take(std::span<const std::byte>)` for each message that is there now. Consumer only.
  template <typename Take>
  void drain(Take&& take) {
    std::uint64_t read = read_.load(std::memory_order_relaxed);  // ours alone to change
    const std::uint64_t written = written_.load(std::memory_order_acquire);  // pairs with push's release
    while (read != written) {
      const auto at = static_cast<std::uint32_t>(read & (capacity_ - 1));
      std::uint32_t length = 0;
      std::memcpy(&length, storage_ + at, sizeof length);
      if (length == kSkip) {
        read += capacity_ - at;
      } else {
        take(std::span<const std::byte>{storage_ + at + kHeader, length});
        read += kHeader + rounded(length);
      }
      read_.store(read, std::memory_order_release);  // we are done with the bytes before `read`
    }
  }

  /// [any thread]; a guess unless both sides rest.
  bool empty() const noexcept {
    return read_.load(std::memory_order_acquire) == written_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::uint32_t kHeader = 8;
  static constexpr std::uint32_t kSkip = 0xffffffffu;

  static constexpr std::uint32_t rounded(std::uint32_t bytes) { return (bytes + 7u) & ~7u; }
  void put_length(std::uint32_t at, std::uint32_t length) noexcept {
    std::memcpy(storage_ + at, &length, sizeof length);
  }

  std::byte* storage_;
  std::uint32_t capacity_;
  // Apart, so that the two threads do not fight for one cache line.
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
};

}  // namespace gpudiag
