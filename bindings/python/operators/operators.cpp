// SPDX-License-Identifier: Apache-2.0
// What libtorch says of itself, as ranges: record_function() scopes always, operators when asked.
//
// Compiled against an installed libtorch and opened by the Python package, which hands over the two
// functions of libgpudiag that are used here; so this library depends on libtorch alone. Callbacks
// run on whatever thread runs the operator, autograd's included, and never take the GIL.
//
// An empty callback on every operator costs a host-bound MLP an eighth of its speed. So operators
// are off unless switched on, which the package does for single iterations.
#include <ATen/record_function.h>
#include <torch/version.h>

#include <cstdint>
#include <cstring>
#include <memory>

#define GPUDIAG_EXPORT __attribute__((visibility("default")))

namespace {

using Annotate = void (*)(int source, const char* name, std::int64_t start_ns, std::int64_t end_ns);
using Now = std::int64_t (*)();

constexpr int kAnnotation = 2;  // gpudiag_range_source
constexpr int kOperator = 3;

// Set before any callback is added, never changed after.
Annotate g_annotate = nullptr;
Now g_now = nullptr;

// Shorter operators name nothing: a silence that is charged to the host is longer, and so is a wait.
constexpr std::int64_t kShortestOperatorNs = 20'000;

struct Entered final : at::ObserverContext {
  std::int64_t start = 0;
  const void* thread = nullptr;
};

// Of the calling thread; a scope may end on another one, where its time says nothing.
const void* this_thread() {
  static thread_local char here;
  return &here;
}

// The profiler numbers its steps while it runs, and only then: no loop to follow.
bool is_profiler_step(const char* name) { return std::strncmp(name, "ProfilerStep#", 13) == 0; }

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction&) {
  auto entered = std::make_unique<Entered>();
  entered->thread = this_thread();
  entered->start = g_now();
  return entered;
}

void leave_scope(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* entered = static_cast<const Entered*>(context);
  if (entered == nullptr || entered->thread != this_thread() || is_profiler_step(function.name())) return;
  g_annotate(kAnnotation, function.name(), entered->start, g_now());
}

void leave_operator(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto* entered = static_cast<const Entered*>(context);
  if (entered == nullptr || entered->thread != this_thread()) return;
  const std::int64_t now = g_now();
  if (now - entered->start >= kShortestOperatorNs) g_annotate(kOperator, function.name(), entered->start, now);
}

at::CallbackHandle g_scopes = 0;
at::CallbackHandle g_operators = 0;

}  // namespace

extern "C" {

/// The version of libtorch this was compiled against.
GPUDIAG_EXPORT const char* gpudiag_torch_built_for(void) { return TORCH_VERSION; }

/// Listens to record_function() scopes. Once; from one thread, like all functions here. 0 on failure.
GPUDIAG_EXPORT int gpudiag_torch_listen(Annotate annotate, Now now) {
  if (g_scopes != 0) return 1;
  g_annotate = annotate;
  g_now = now;
  try {
    g_scopes = at::addGlobalCallback(
        at::RecordFunctionCallback(enter, leave_scope).scopes({at::RecordScope::USER_SCOPE}));
    return 1;
  } catch (...) {
    return 0;
  }
}

/// Operators and autograd's nodes too, or no more.
GPUDIAG_EXPORT void gpudiag_torch_operators(int on) {
  if (g_annotate == nullptr) return;
  try {
    if (on != 0 && g_operators == 0) {
      g_operators = at::addGlobalCallback(
          at::RecordFunctionCallback(enter, leave_operator)
              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
    } else if (on == 0 && g_operators != 0) {
      at::removeCallback(g_operators);
      g_operators = 0;
    }
  } catch (...) {
  }
}

/// Listens no more.
GPUDIAG_EXPORT void gpudiag_torch_leave(void) {
  gpudiag_torch_operators(0);
  if (g_scopes == 0) return;
  try {
    at::removeCallback(g_scopes);
  } catch (...) {
  }
  g_scopes = 0;
}
}
