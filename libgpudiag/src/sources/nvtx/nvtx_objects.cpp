// SPDX-License-Identifier: Apache-2.0
#include "sources/nvtx/nvtx_objects.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "sources/host/now.hpp"

namespace gpudiag {
namespace {

// A job that registers a new string for each step must not make us grow for ever.
constexpr std::size_t kTextBytesLimit = 4u << 20;
constexpr std::size_t kTextKept = 1000;

}  // namespace

const NvtxText* keep_text(std::string_view text) noexcept {
  static constinit std::mutex mutex;
  static constinit std::size_t used = 0;
  static const NvtxText kNone{};
  const std::size_t size = std::min(text.size(), kTextKept);
  {
    const std::lock_guard lock{mutex};
    if (used + sizeof(NvtxText) + size > kTextBytesLimit) return &kNone;
    used += sizeof(NvtxText) + size;
  }
  void* memory = std::malloc(sizeof(NvtxText) + size);  // for ever: handles have no end we could trust
  if (memory == nullptr) return &kNone;
  auto* kept = static_cast<NvtxText*>(memory);
  kept->size = static_cast<std::uint32_t>(size);
  if (size != 0) std::memcpy(kept->text, text.data(), size);
  return kept;
}

std::uint64_t OpenRanges::start(std::string_view text, std::uint64_t payload) noexcept {
  const std::uint64_t begin = hint_.fetch_add(1, std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < kSlots; ++i) {
    const std::uint64_t index = (begin + i) % kSlots;
    Slot& slot = slots_[index];
    State expected = State::kFree;
    if (!slot.state.compare_exchange_strong(expected, State::kBusy, std::memory_order_acquire)) continue;
    slot.thread = this_thread_id();
    slot.text_bytes = static_cast<std::uint16_t>(std::min(text.size(), kRangeTextKept));
    std::memcpy(slot.text, text.data(), slot.text_bytes);
    slot.payload = payload;
    const std::uint64_t generation = slot.generation.fetch_add(1, std::memory_order_relaxed) + 1;
    slot.start = now();
    slot.state.store(State::kOpen, std::memory_order_release);
    return (generation & 0xffffffffu) * kSlots + index + 1;
  }
  return 0;
}

void OpenRanges::end(std::uint64_t id) noexcept {
  if (id == 0) return;
  const TimePoint end = now();
  Slot& slot = slots_[(id - 1) % kSlots];
  State expected = State::kOpen;
  if (!slot.state.compare_exchange_strong(expected, State::kBusy, std::memory_order_acquire)) return;
  if (slot.generation.load(std::memory_order_relaxed) != (id - 1) / kSlots) {  // ended already, used anew
    slot.state.store(State::kOpen, std::memory_order_release);
    return;
  }
  log_range({slot.text, slot.text_bytes}, RangeSource::kNvtx, 0, slot.start, end, slot.payload, slot.thread);
  slot.state.store(State::kFree, std::memory_order_release);
}

}  // namespace gpudiag
