// SPDX-License-Identifier: Apache-2.0
#include "scripted_core.hpp"

#include <array>
#include <atomic>
#include <ctime>
#include <utility>

namespace simgpu {
namespace testing {
namespace {

std::atomic<const Listener*> g_listener{nullptr};
std::atomic<std::uint32_t> g_wanted{0};
std::array<std::array<std::atomic<bool>, 1024>, 2> g_unwanted_calls{};
std::atomic<std::int64_t> g_now{0};
std::atomic<std::uint32_t> g_correlation{0};
std::atomic<std::uint64_t> g_operation{0};
std::function<void()> g_on_deliver;
thread_local std::uint32_t t_correlation = 0;

const Listener* listening_for(std::uint32_t what) {
  return (g_wanted.load() & what) != 0 ? g_listener.load() : nullptr;
}

const Listener* listening_for_call(const Call& call) {
  return wants_call(call.domain, call.cbid) ? g_listener.load() : nullptr;
}

}  // namespace

void set_now(std::int64_t now_ns) { g_now.store(now_ns); }
std::uint32_t wanted() { return g_wanted.load(); }
bool wants_call(ApiDomain domain, std::uint32_t cbid) {
  const std::uint32_t notice = domain == ApiDomain::runtime ? kWantRuntimeApi : kWantDriverApi;
  return (g_wanted.load() & notice) != 0 && !g_unwanted_calls[static_cast<std::size_t>(domain)][cbid].load();
}
void on_deliver(std::function<void()> hook) { g_on_deliver = std::move(hook); }

std::uint32_t run_call(const Call& call, const std::function<void(std::uint32_t)>& inside) {
  int result = call.result;
  ApiCall notified{};
  notified.domain = call.domain;
  notified.cbid = call.cbid;
  notified.correlation_id = next_correlation_id();
  notified.function_name = call.name;
  notified.params = call.params;
  notified.return_value = &result;
  notified.symbol_name = (g_wanted.load() & kWantSymbols) != 0 ? call.symbol : nullptr;
  notified.context = reinterpret_cast<void*>(0x1000);
  notified.context_uid = 1;
  notified.start_ns = call.start_ns;
  const std::uint32_t outer = std::exchange(t_correlation, notified.correlation_id);
  if (const Listener* table = listening_for_call(call)) {
    table->api_enter(notified);
  }
  if (inside) {
    inside(notified.correlation_id);
  }
  notified.end_ns = call.end_ns;
  if (const Listener* table = listening_for_call(call)) {
    table->api_exit(notified);
  }
  t_correlation = outer;
  return notified.correlation_id;
}

OperationRecord kernel(const char* name, std::uint32_t correlation_id) {
  OperationRecord op{};
  op.kind = OperationKind::kernel;
  op.id = g_operation.fetch_add(1) + 1;
  op.correlation_id = correlation_id;
  op.context_uid = 1;
  op.stream_id = 7;
  op.name = name;
  op.grid[0] = op.grid[1] = op.grid[2] = 1;
  op.block[0] = 256;
  op.block[1] = op.block[2] = 1;
  op.channel_id = 3;
  op.channel_type = 1;
  return op;
}

void queue(OperationRecord& operation) {
  if (const Listener* table = listening_for(kWantOperations)) {
    operation.tag = table->operation_queued(operation);
  }
}

void finish(OperationRecord operation, std::int64_t start_ns, std::int64_t end_ns) {
  operation.start_ns = start_ns;
  operation.end_ns = end_ns;
  if (operation.tag != 0) {
    g_listener.load()->operation_finished(operation);
  }
}

void synchronised(const SyncRecord& sync) {
  if (const Listener* table = listening_for(kWantSyncs)) {
    table->synchronised(sync);
  }
}

void memory_changed(const MemoryRecord& memory) {
  if (const Listener* table = listening_for(kWantMemory)) {
    table->memory_changed(memory);
  }
}

void resource_changed(const ResourceRecord& resource) {
  if (const Listener* table = listening_for(kWantResources)) {
    table->resource_changed(resource);
  }
}

}  // namespace testing

void set_listener(const Listener* listener) noexcept { testing::g_listener.store(listener); }
void set_wanted(std::uint32_t wanted) noexcept { testing::g_wanted.store(wanted); }
void set_wanted_call(ApiDomain domain, std::uint32_t cbid, bool wanted) noexcept {
  testing::g_unwanted_calls[static_cast<std::size_t>(domain)][cbid].store(!wanted);
}

void deliver_finished() {
  if (testing::g_on_deliver) {
    testing::g_on_deliver();
  }
}

std::int64_t now_ns() noexcept {
  if (const std::int64_t scripted = testing::g_now.load()) {
    return scripted;
  }
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

std::int64_t device_clock_ns(std::uint32_t, std::int64_t host_ns) noexcept { return host_ns; }
std::uint32_t next_correlation_id() noexcept { return testing::g_correlation.fetch_add(1) + 1; }
std::uint32_t current_correlation_id() noexcept { return testing::t_correlation; }
const char* api_name(ApiDomain, std::uint32_t) noexcept { return nullptr; }
bool driver_initialised() noexcept { return true; }

// Context 0x1000 is context 1 on device 0; stream 0x2000 is stream 13.
std::uint32_t context_uid(void* context) noexcept {
  return context == nullptr || context == reinterpret_cast<void*>(0x1000) ? 1 : 0;
}
std::uint32_t context_device(void*) noexcept { return 0; }
std::uint32_t stream_id(void*, void* stream, bool per_thread_default) noexcept {
  if (stream == nullptr) {
    return per_thread_default ? 8 : 7;
  }
  return stream == reinterpret_cast<void*>(0x2000) ? 13 : 0xffffffff;
}
std::uint32_t graph_id(void* graph) noexcept {
  return graph == reinterpret_cast<void*>(0x3000) ? 5 : 0;
}
std::uint32_t graph_exec_id(void* graph) noexcept {
  return graph == reinterpret_cast<void*>(0x4000) ? 6 : 0;
}
std::uint64_t graph_node_id(void* node) noexcept {
  return node == reinterpret_cast<void*>(0x5000) ? 0x500000001 : 0;
}
void* current_context() noexcept { return reinterpret_cast<void*>(0x1000); }

std::uint32_t device_count() noexcept { return 1; }
const DeviceDescription& device_description(std::uint32_t) noexcept {
  static const DeviceDescription device = {"Scripted GPU", std::uint64_t{80} << 30,
                                           3'350'000'000'000, 132, 1'980'000, 9, 0, 52'428'800,
                                           {0xab, 0xcd}, 0x1b};
  return device;
}
std::uint64_t device_memory_used(std::uint32_t) noexcept { return 1'000'000; }
std::int64_t device_busy_ns(std::uint32_t) noexcept { return now_ns() / 2; }

}  // namespace simgpu
