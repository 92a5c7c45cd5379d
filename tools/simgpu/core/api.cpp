// SPDX-License-Identifier: Apache-2.0
#include "api.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "callbacks.hpp"
#include "clock.hpp"
#include "costs.hpp"
#include "faults.hpp"
#include "memory.hpp"
#include "options.hpp"

namespace simgpu {

std::atomic<bool> g_ready{false};

namespace {

constexpr int kInitializationError = 3;
constexpr int kNoDeviceError = 100;
constexpr int kDefaultFault = 999;  // cudaErrorUnknown

std::atomic<std::uint32_t> g_correlation{0};  // relaxed: a counter
std::atomic<bool> g_initialised{false};       // relaxed: asked for by others as a hint
bool g_is_child = false;                      // set between fork and the first call of the child

// On hardware the driver's library is there before it looks for a tool, and tools ask it things. Here
// it may not be: the runtime does without. It lies beside this library.
void load_driver_library() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&load_driver_library), &here) == 0 || here.dli_fname == nullptr) return;
  const std::string own{here.dli_fname};
  const std::string path = own.substr(0, own.rfind('/') + 1) + "libcuda.so.1";
  dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // without it the tool finds no driver, and says so
}

// As the driver: loads the tool's library and calls it before the first call does its work.
void inject() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  load_driver_library();
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    std::fprintf(stderr, "simgpu: CUDA_INJECTION64_PATH='%s' cannot be loaded: %s\n", path,
                 dlerror());
    return;
  }
  using Initialise = int (*)();
  const auto initialise = reinterpret_cast<Initialise>(dlsym(library, "InitializeInjection"));
  if (initialise != nullptr) initialise();
}

void at_exit() {
  if (g_is_child) return;
  Engine::get().shut_down();
  finish_truth();
}

void before_fork() {
  Engine::get().mutex().lock();
}
void after_fork_in_parent() {
  Engine::get().mutex().unlock();
}
void after_fork_in_child() {
  g_is_child = true;
  g_ready.store(false, std::memory_order_relaxed);
  Engine::get().reset_after_fork();
  Engine::get().mutex().unlock();
  CallbackThread::get().reset_after_fork();
  abandon_truth();
}

void initialise_once() {
  ThreadState& thread = thread_state();
  thread.initialising = true;
  start_truth();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  // Registered before the tool's own handlers, so that ours run after them.
  std::atexit(at_exit);
  std::at_quick_exit(at_exit);
  inject();
  thread.initialising = false;
  g_initialised.store(true, std::memory_order_relaxed);
  g_ready.store(true, std::memory_order_release);
  if (listener_wants(kWantResources)) {
    ResourceRecord record{};
    record.event = ResourceEvent::driver_initialised;
    notify_resource(record);
  }
}

std::once_flag& once() {
  static auto* const kOnce = new std::once_flag;
  return *kOnce;
}

}  // namespace

ThreadState& thread_state() noexcept {
  // Leaked per thread on purpose: code may call CUDA from destructors of other thread locals.
  static thread_local ThreadState* state = nullptr;
  if (state == nullptr) state = new ThreadState;
  return *state;
}

std::uint32_t next_correlation_id() noexcept {
  std::uint32_t id = 0;
  while (id == 0) id = g_correlation.fetch_add(1, std::memory_order_relaxed) + 1;
  return id;
}

std::uint32_t current_correlation_id() noexcept {
  return thread_state().correlation_id;
}

bool driver_initialised() noexcept {
  return g_initialised.load(std::memory_order_relaxed);
}

int initialise_driver() noexcept {
  if (g_is_child) return kInitializationError;
  if (all_devices().empty()) return kNoDeviceError;
  if (thread_state().initialising) return 0;  // the tool's own calls while it initialises
  std::call_once(once(), initialise_once);
  return 0;
}

void prepare(EntryPoint& entry) {
  static auto* const kMutex = new std::mutex;
  const std::lock_guard guard(*kMutex);
  if (entry.prepared.load(std::memory_order_relaxed)) return;
  entry.fault = find_fault(entry.name);
  entry.host_cost_ns = api_cost_ns(entry.name);
  entry.prepared.store(true, std::memory_order_release);
}

ObservedCall::ObservedCall(EntryPoint& entry, const void* params, const char* symbol)
    : notices_(listener_wants_call(entry.domain, entry.cbid)),
      truth_(truth_enabled() && entry.needs_device) {
  ThreadState& thread = thread_state();
  if (notices_ || truth_) call_.start_ns = now_ns();
  if (notices_) {
    call_.domain = entry.domain;
    call_.cbid = entry.cbid;
    call_.correlation_id = thread.correlation_id;
    call_.function_name = entry.name;
    call_.params = params;
    call_.symbol_name = symbol;
    call_.context = current_context();
    call_.context_uid = context_uid(call_.context);
    notify_enter(call_);
  }
  if (entry.host_cost_ns > 0) {
    const std::int64_t begin_ns = now_ns();
    spin_until_ns(begin_ns + entry.host_cost_ns);
    if (truth_enabled()) truth_delay("api_cost", begin_ns, now_ns());
  }
  if (entry.fault == nullptr || !entry.fault->fires(entry.name)) return;
  if (truth_enabled()) truth_fault(*entry.fault, 0);
  if (const std::int64_t delay_ns = entry.fault->number("delay_ns", 0); delay_ns > 0) {
    const std::int64_t begin_ns = now_ns();
    sleep_until_ns(begin_ns + delay_ns);
    if (truth_enabled()) truth_delay("fault", begin_ns, now_ns());
  }
  const bool only_delays = entry.fault->has("delay_ns") && !entry.fault->has("error");
  if (!only_delays) fault_error_ = static_cast<int>(entry.fault->number("error", kDefaultFault));
}

void ObservedCall::finish(int& result) {
  if (notices_ || truth_) call_.end_ns = now_ns();
  if (notices_) {
    call_.return_value = &result;
    call_.context = current_context();
    call_.context_uid = context_uid(call_.context);
    notify_exit(call_);
  }
  if (truth_) {
    const ThreadState& thread = thread_state();
    const std::uint32_t device =
        thread.contexts.empty() ? thread.device : thread.contexts.back()->device->id;
    truth_call(device, result, call_.start_ns, call_.end_ns);
  }
}

void* current_context() noexcept {
  const ThreadState& thread = thread_state();
  return thread.contexts.empty() ? nullptr : thread.contexts.back();
}

std::uint32_t context_uid(void* context) noexcept {
  if (context == nullptr) context = current_context();
  const auto* known = static_cast<Context*>(context);
  return known != nullptr && known->magic == kContextMagic ? known->uid : 0;
}

std::uint32_t context_device(void* context) noexcept {
  if (context == nullptr) context = current_context();
  const auto* known = static_cast<Context*>(context);
  return known != nullptr && known->magic == kContextMagic ? known->device->id : 0;
}

std::uint32_t stream_id(void* context, void* stream, bool per_thread_default) noexcept {
  constexpr std::uint32_t kNone = 0xffffffff;
  const auto value = reinterpret_cast<std::uintptr_t>(stream);
  if (value > 2) {
    const auto* known = static_cast<Stream*>(stream);
    return known->magic == kStreamMagic ? known->id : kNone;
  }
  auto* known = static_cast<Context*>(context == nullptr ? current_context() : context);
  if (known == nullptr) return kNone;
  if (value == 1 || (value == 0 && !per_thread_default)) return known->legacy.id;
  const ThreadState& thread = thread_state();
  const auto own = thread.default_streams.find(known);
  return own == thread.default_streams.end() ? kNone : own->second->id;
}

std::uint32_t device_count() noexcept {
  return static_cast<std::uint32_t>(all_devices().size());
}

const DeviceDescription& device_description(std::uint32_t device_id) noexcept {
  return all_devices()[device_id]->description;
}

std::uint64_t device_memory_used(std::uint32_t device_id) noexcept {
  const Lock guard = Engine::get().lock();
  return all_devices()[device_id]->used_bytes;
}

std::int64_t device_busy_ns(std::uint32_t device_id) noexcept {
  const Lock guard = Engine::get().lock();
  Engine::get().retire(now_ns());
  return all_devices()[device_id]->busy_ns;
}

}  // namespace simgpu
