// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../core/listener.hpp"
#include "api_records.hpp"
#include "operation_records.hpp"
#include "resource_records.hpp"

namespace simgpu::cupti {
namespace {

std::atomic<bool> g_inert{false};  // set in a child, where there is one thread; relaxed will do

constexpr Listener kListener = {
    .api_enter = &enter_call,
    .api_exit = &exit_call,
    .operation_queued = &queue_operation,
    .operation_finished = &finish_operation,
    .synchronised = &record_sync,
    .memory_changed = &record_memory,
    .resource_changed = &record_resource,
};

bool wants_operations(const KindTable& kinds) {
  for (const auto kind :
       {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_GRAPH_TRACE}) {
    if (kinds.enabled_anywhere(kind)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_inert() noexcept { return g_inert.load(std::memory_order_relaxed); }

void Settings::reset() {
  thread_id_type.store(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT, std::memory_order_relaxed);
  latency_timestamps.store(false, std::memory_order_relaxed);
  all_sync_records.store(true, std::memory_order_relaxed);
  event_timestamps.store(false, std::memory_order_relaxed);
}

Library& library() {
  static Library* const instance = [] {
    auto* fresh = new Library;
    attach_to_core();
    return fresh;
  }();
  return *instance;
}

Library::Library() : process_id(static_cast<std::uint32_t>(getpid())) {
  store.set_wake([] { library().worker.wake(); });
}

void attach_to_core() {
  pthread_atfork(nullptr, nullptr, [] { g_inert.store(true, std::memory_order_relaxed); });
  set_listener(&kListener);
  // Resources are followed from now on, so that EnableAndDump can tell a late client.
  set_wanted(kWantResources);
}

// Whether any function of the API is wanted; tells the core which.
bool Library::update_wanted_calls(ApiDomain domain, CUpti_CallbackDomain callbacks) {
  bool any = false;
  const std::uint32_t end =
      domain == ApiDomain::runtime ? CUPTI_RUNTIME_TRACE_CBID_SIZE : CUPTI_DRIVER_TRACE_CBID_SIZE;
  for (std::uint32_t cbid = 1; cbid < end; ++cbid) {
    const bool wanted = kinds.api_enabled(domain, cbid) || subscriber.wants(callbacks, cbid);
    set_wanted_call(domain, cbid, wanted);
    any = any || wanted;
  }
  return any;
}

void Library::update_wanted() {
  std::uint32_t wanted = kWantResources;
  const auto want = [&](bool condition, Wanted notice) {
    if (condition) {
      wanted |= notice;
    }
  };
  want(update_wanted_calls(ApiDomain::runtime, CUPTI_CB_DOMAIN_RUNTIME_API), kWantRuntimeApi);
  want(update_wanted_calls(ApiDomain::driver, CUPTI_CB_DOMAIN_DRIVER_API), kWantDriverApi);
  want(subscriber.wants_any(CUPTI_CB_DOMAIN_RUNTIME_API) ||
           subscriber.wants_any(CUPTI_CB_DOMAIN_DRIVER_API),
       kWantSymbols);
  want(wants_operations(kinds), kWantOperations);
  want(kinds.enabled_anywhere(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) ||
           subscriber.wants_any(CUPTI_CB_DOMAIN_SYNCHRONIZE),
       kWantSyncs);
  want(kinds.enabled_anywhere(CUPTI_ACTIVITY_KIND_MEMORY) ||
           kinds.enabled_anywhere(CUPTI_ACTIVITY_KIND_MEMORY2),
       kWantMemory);
  set_wanted(wanted);
}

std::uint32_t thread_id_for_records() {
  if (library().settings.thread_id_type.load(std::memory_order_relaxed) ==
      CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) {
    static thread_local const auto id = static_cast<std::uint32_t>(syscall(SYS_gettid));
    return id;
  }
  return static_cast<std::uint32_t>(pthread_self());
}

}  // namespace simgpu::cupti
