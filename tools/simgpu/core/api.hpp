// SPDX-License-Identifier: Apache-2.0
//
// What happens around every call of the runtime and the driver API: first-use initialisation and
// injection, the correlation id, enter and exit notices, faults and host costs, the last error.
//
// program → entry point (generated) → **run_call** → handler → core
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "engine.hpp"
#include "listener.hpp"
#include "notices.hpp"
#include "thread_state.hpp"
#include "truth.hpp"

namespace simgpu {

class Fault;

// One exported function. Static storage; prepared at its first call.
struct EntryPoint {
  ApiDomain domain;
  std::uint32_t cbid;
  const char* name;
  bool needs_device = true;  // false for those that work before and without initialisation
  bool copes_without = false;  // runs even where initialisation fails, to say so in its outputs

  std::atomic<bool> prepared{false};  // release: publishes the two fields below
  Fault* fault = nullptr;
  std::int64_t host_cost_ns = 0;
};

// Initialises the simulated driver for this process if need be, injection included. Returns 0,
// or cudaErrorNoDevice, or cudaErrorInitializationError in a child of a process that used CUDA.
int initialise_driver() noexcept;

// True in the common case: nothing left to do for this process.
extern std::atomic<bool> g_ready;  // acquire where read before use of the driver's state

void prepare(EntryPoint& entry);

// The slow parts of a call, out of line.
class ObservedCall {
 public:
  ObservedCall(EntryPoint& entry, const void* params, const char* symbol);
  // The fault's error if one strikes, else 0.
  int fault_error() const { return fault_error_; }
  void finish(int& result);

 private:
  ApiCall call_{};
  bool notices_;
  bool truth_;
  int fault_error_ = 0;
};

// Runs one API call. `body` returns the numeric result (cudaError_t or CUresult).
template <typename Body>
int run_call(EntryPoint& entry, const void* params, const char* symbol, Body&& body) {
  ThreadState& thread = thread_state();
  if (entry.needs_device && !g_ready.load(std::memory_order_acquire)) {
    if (const int error = initialise_driver(); error != 0 && !entry.copes_without) {
      if (entry.domain == ApiDomain::runtime) thread.last_error = error;
      return error;
    }
  }
  if (!entry.prepared.load(std::memory_order_acquire)) prepare(entry);
  const std::uint32_t outer_id = std::exchange(thread.correlation_id, next_correlation_id());
  const char* outer = std::exchange(thread.function, entry.name);
  int result = 0;
  if (entry.fault == nullptr && entry.host_cost_ns == 0 &&
      !listener_wants_call(entry.domain, entry.cbid) && !truth_enabled()) {
    result = body();
  } else {
    ObservedCall observed(entry, params, symbol);
    result = observed.fault_error();
    if (result == 0) result = body();
    observed.finish(result);
  }
  thread.correlation_id = outer_id;
  thread.function = outer;
  Engine& engine = Engine::get();
  if (engine.should_deliver()) engine.deliver(false);
  return result;
}

}  // namespace simgpu
