// SPDX-License-Identifier: Apache-2.0
#include "notices.hpp"

#include "engine.hpp"
#include "operation.hpp"

namespace simgpu {

std::atomic<std::uint32_t> g_wanted{0};
std::array<std::array<std::atomic<bool>, kCallIds>, 2> g_unwanted_calls{};

namespace {
std::atomic<const Listener*> g_listener{nullptr};
std::atomic<std::uint32_t> g_asked{0};

const Listener* listener() noexcept {
  return g_listener.load(std::memory_order_acquire);
}

void publish() noexcept {
  g_wanted.store(listener() == nullptr ? 0 : g_asked.load(std::memory_order_relaxed),
                 std::memory_order_relaxed);
}
}  // namespace

void set_listener(const Listener* table) noexcept {
  g_listener.store(table, std::memory_order_release);
  publish();
}

void set_wanted(std::uint32_t wanted) noexcept {
  g_asked.store(wanted, std::memory_order_relaxed);
  publish();
}

void set_wanted_call(ApiDomain domain, std::uint32_t cbid, bool wanted) noexcept {
  if (cbid < kCallIds) {
    g_unwanted_calls[static_cast<std::size_t>(domain)][cbid].store(!wanted, std::memory_order_relaxed);
  }
}

void deliver_finished() {
  Engine& engine = Engine::get();
  {
    const Lock guard = engine.lock();
    engine.retire(now_ns());
  }
  engine.deliver(true);
}

void notify_enter(ApiCall& call) {
  const Listener* table = listener();
  if (table != nullptr && table->api_enter != nullptr) table->api_enter(call);
}

void notify_exit(ApiCall& call) {
  const Listener* table = listener();
  if (table != nullptr && table->api_exit != nullptr) table->api_exit(call);
}

std::uint64_t notify_queued(const Operation& operation) {
  const Listener* table = listener();
  if (table == nullptr || table->operation_queued == nullptr) return 0;
  return table->operation_queued(operation.record);
}

void notify_finished(const OperationRecord& record) {
  const Listener* table = listener();
  if (table != nullptr && table->operation_finished != nullptr) table->operation_finished(record);
}

void notify_sync(const SyncRecord& sync) {
  const Listener* table = listener();
  if (table != nullptr && table->synchronised != nullptr) table->synchronised(sync);
}

void notify_memory(const MemoryRecord& memory) {
  const Listener* table = listener();
  if (table != nullptr && table->memory_changed != nullptr) table->memory_changed(memory);
}

void notify_resource(const ResourceRecord& resource) {
  const Listener* table = listener();
  if (table != nullptr && table->resource_changed != nullptr) table->resource_changed(resource);
}

}  // namespace simgpu
