// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/buffer_pool.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "sources/host/now.hpp"

namespace gpudiag {
BufferPool::BufferPool(std::size_t limit) : limit_{std::min(limit, kSlots)} {}

std::uint8_t* BufferPool::take() noexcept {
  std::uint8_t* data = claim(State::kFree);
  if (data == nullptr && made() < limit_ + held()) data = make();
  if (data == nullptr) data = claim(State::kFilled);
  if (data == nullptr) data = make();
  if (data != nullptr) held_.fetch_add(1, std::memory_order_relaxed);
  taken_.fetch_add(1, std::memory_order_relaxed);
  return data;
}

std::uint8_t* BufferPool::claim(State from) noexcept {
  const std::size_t made = std::min(made_.load(std::memory_order_acquire), kSlots);
  const std::size_t begin = hint_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < made; ++i) {
    Slot& slot = slots_[(begin + i) % made];
    State expected = from;
    if (!slot.state.compare_exchange_strong(expected, State::kHeld, std::memory_order_acq_rel)) continue;
    slot.taken_ns.store(now().ns, std::memory_order_relaxed);
    hint_.store((begin + i + 1) % made, std::memory_order_relaxed);
    if (from == State::kFilled) {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      sacrificed_.fetch_add(slot.valid_bytes, std::memory_order_relaxed);
    }
    return slot.data.load(std::memory_order_relaxed);
  }
  return nullptr;
}

std::uint8_t* BufferPool::make() noexcept {
  void* memory =
      mmap(nullptr, kActivityBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* data = static_cast<std::uint8_t*>(memory);
  const std::size_t index = made_.fetch_add(1, std::memory_order_acq_rel);
  if (index >= kSlots) {  // 256 MiB held by CUPTI: it gets memory that we shall not see again
    made_.fetch_sub(1, std::memory_order_relaxed);
    return data;
  }
  slots_[index].data.store(data, std::memory_order_relaxed);
  slots_[index].taken_ns.store(now().ns, std::memory_order_relaxed);
  slots_[index].state.store(State::kHeld, std::memory_order_release);
  return data;
}

// A search, some 0.3 us for 512 buffers and once for each of them: pointers that are not ours come too,
// when another profiler's buffers are completed to us, and nothing may be read through them.
BufferPool::Slot* BufferPool::slot_of(const std::uint8_t* data) noexcept {
  if (data == nullptr) return nullptr;
  for (std::size_t i = 0; i < std::min(made(), kSlots); ++i)
    if (slots_[i].data.load(std::memory_order_relaxed) == data) return &slots_[i];
  return nullptr;
}

void BufferPool::give_back(std::uint8_t* data, std::size_t valid_bytes) noexcept {
  Slot* slot = slot_of(data);
  if (slot == nullptr) return;
  State abandoned = State::kAbandoned;
  if (slot->state.compare_exchange_strong(abandoned, State::kFree, std::memory_order_acq_rel)) return;
  State held = State::kHeld;
  if (!slot->state.compare_exchange_strong(held, State::kDraining, std::memory_order_acq_rel)) return;
  slot->valid_bytes = std::min(valid_bytes, kActivityBufferBytes);
  slot->order = order_.fetch_add(1, std::memory_order_relaxed);
  held_.fetch_sub(1, std::memory_order_relaxed);
  waiting_.fetch_add(1, std::memory_order_relaxed);
  slot->state.store(State::kFilled, std::memory_order_release);
}

TimePoint BufferPool::oldest_held() const noexcept {
  TimePoint oldest = kTimeMax;
  for (std::size_t i = 0; i < std::min(made(), kSlots); ++i)
    if (slots_[i].state.load(std::memory_order_acquire) == State::kHeld)
      oldest = std::min(oldest, TimePoint{slots_[i].taken_ns.load(std::memory_order_relaxed)});
  return oldest;
}

std::size_t BufferPool::abandon_held() noexcept {
  std::size_t abandoned = 0;
  for (std::size_t i = 0; i < std::min(made(), kSlots); ++i) {
    State expected = State::kHeld;
    if (!slots_[i].state.compare_exchange_strong(expected, State::kAbandoned, std::memory_order_acq_rel)) continue;
    held_.fetch_sub(1, std::memory_order_relaxed);
    ++abandoned;
  }
  return abandoned;
}

std::vector<BufferPool::Filled> BufferPool::filled() {
  struct Found {
    Slot* slot;
    std::uint64_t order;
  };
  std::vector<Found> found;
  for (std::size_t i = 0; i < std::min(made(), kSlots); ++i) {
    State expected = State::kFilled;
    // Ours now: nobody can sacrifice it under our eyes.
    if (slots_[i].state.compare_exchange_strong(expected, State::kDraining, std::memory_order_acq_rel))
      found.push_back({&slots_[i], slots_[i].order});
  }
  waiting_.fetch_sub(found.size(), std::memory_order_relaxed);
  std::ranges::sort(found, {}, &Found::order);
  std::vector<Filled> buffers;
  buffers.reserve(found.size());
  for (const Found& f : found)
    buffers.push_back({f.slot->data.load(std::memory_order_relaxed), f.slot->valid_bytes});
  return buffers;
}

void BufferPool::recycle(const Filled& buffer) noexcept {
  if (Slot* slot = slot_of(buffer.data)) slot->state.store(State::kFree, std::memory_order_release);
}

}  // namespace gpudiag
