// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/buffer_callbacks.hpp"

#include <atomic>

namespace gpudiag {
namespace {

// The one trampoline: CUPTI's buffer callbacks carry no user pointer. release and acquire: the pool
// is whole before CUPTI sees it.
std::atomic<BufferPool*> g_pool{nullptr};
// For the moment when no memory can be had at all: null would crash older CUPTIs, and what is written
// here is never read.
alignas(64) std::uint8_t g_last_resort[kActivityBufferBytes];

void CUPTIAPI on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  BufferPool* pool = g_pool.load(std::memory_order_acquire);
  *buffer = pool != nullptr ? pool->take() : nullptr;
  if (*buffer == nullptr) *buffer = g_last_resort;
  *size = kActivityBufferBytes;
  *max_records = 0;
}

void CUPTIAPI on_buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  if (BufferPool* pool = g_pool.load(std::memory_order_acquire)) pool->give_back(buffer, valid);
}

}  // namespace

void set_buffer_pool(BufferPool* pool) noexcept { g_pool.store(pool, std::memory_order_release); }

CUptiResult register_buffer_callbacks(const CuptiTable& cupti) {
  return cupti.register_callbacks(on_buffer_requested, on_buffer_completed);
}

}  // namespace gpudiag
