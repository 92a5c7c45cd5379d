// SPDX-License-Identifier: Apache-2.0
// Flow: beside it: the C ABI of gpudiag.h over the session, and over that of another copy where that
// one owns the session. No exception leaves a function here.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>

#include "fmt/format.h"
#include "gpudiag/gpudiag.h"
#include "session/live_session.hpp"
#include "session/registry.hpp"
#include "sources/host/now.hpp"
#include "sources/host/thread_log.hpp"
#include "sources/nccl/nccl_calls.hpp"
#include "sources/nccl/profiler_abi.h"
#include "sources/nvtx/nvtx_source.hpp"

namespace gpudiag {
namespace {

using Table = gpudiag_api_v1_table;

// This copy's table. Not by gpudiag_api_v1(): in a process with several copies that name may lead to
// another one's.
extern Table g_table;

constexpr std::uintptr_t kApiDomain = 0;  // ranges of the API nest apart from NVTX's

// Where the public calls go: this copy's table, another copy's, or nowhere. `g_looked` is set once the
// other copies have been asked; from then on they tell us. release and acquire on g_target: a table is
// filled before it can be called.
std::atomic<const Table*> g_target{nullptr};
std::atomic<bool> g_looked{false};
// A session that gpudiag_start() of this copy began; one that was injected is not the program's to stop.
std::atomic<bool> g_started_by_program{false};

void adopt(const Table* owner) {
  g_target.store(owner, std::memory_order_release);
  g_looked.store(true, std::memory_order_relaxed);
}

/// [hot] once looked; the first call of a copy that nobody has started asks the others.
const Table* target() noexcept {
  if (const Table* table = g_target.load(std::memory_order_acquire)) return table;
  if (g_looked.load(std::memory_order_relaxed)) return nullptr;
  g_looked.store(true, std::memory_order_relaxed);
  try {
    const Table* owner = find_session(g_table);
    if (owner != nullptr) g_target.store(owner, std::memory_order_release);
    return owner;
  } catch (...) {
    return nullptr;
  }
}

gpudiag_options blank_options() {
  gpudiag_options blank{};
  blank.size = sizeof blank;
  blank.budget = -1;
  blank.rank = -1;
  return blank;
}

/// The fields of a caller whose struct may be shorter than ours.
gpudiag_options complete(const gpudiag_options* given) {
  gpudiag_options options = blank_options();
  if (given == nullptr || given->size < sizeof given->size) return options;
  std::memcpy(&options, given, std::min(given->size, sizeof options));
  return options;
}

OptionOverrides overrides_of(const gpudiag_options& options) {
  OptionOverrides overrides;
  const auto set = [&](const char* name, const char* value) {
    if (value != nullptr) overrides.emplace(name, value);
  };
  set("GPUDIAG_ENABLED", options.enabled);
  set("GPUDIAG_LOG", options.log);
  set("GPUDIAG_DIR", options.dir);
  set("GPUDIAG_RECORD", options.record);
  set("GPUDIAG_CALLBACKS", options.callbacks);
  set("GPUDIAG_NVTX", options.nvtx);
  set("GPUDIAG_RANGES", options.ranges);
  set("GPUDIAG_ITERATION", options.iteration);
  set("GPUDIAG_CUPTI", options.cupti);
  set("GPUDIAG_WATCH", options.watch);
  if (options.budget >= 0) overrides.emplace("GPUDIAG_BUDGET", fmt::format("{}", options.budget));
  if (options.rank >= 0) overrides.emplace("GPUDIAG_RANK", fmt::format("{}", options.rank));
  return overrides;
}

std::uint8_t cause_code(gpudiag_cause cause) {
  return cause > GPUDIAG_CAUSE_NONE && cause <= GPUDIAG_CAUSE_UNKNOWN ? static_cast<std::uint8_t>(cause)
                                                                     : std::uint8_t{0};
}

std::string_view view(const char* text) {
  return text == nullptr ? std::string_view{} : std::string_view{text, strnlen(text, kRangeTextKept)};
}

// What this copy does when it owns the session.
gpudiag_status own_start(const gpudiag_options* given) {
  try {
    Table& mine = g_table;
    LiveSession& session = LiveSession::instance();
    if (session.refuses_own_thread()) return GPUDIAG_FAILED;
    if (session.forked()) return GPUDIAG_FORKED;
    const Table* owner = claim_session(mine);
    if (owner != &mine) return owner->active() != 0 ? GPUDIAG_RUNNING : owner->start(given);
    if (const unsigned asides = take_asides_of_others(mine); asides > 0) session.add_asides(asides, {});
    const gpudiag_status status = session.start(overrides_of(complete(given)));
    if (status < 0) release_session(mine);
    return status;
  } catch (...) {
    return GPUDIAG_FAILED;
  }
}

void own_stop() {
  try {
    LiveSession& session = LiveSession::instance();
    if (!session.active()) return;
    session.stop();
    if (!session.active()) release_session(g_table);
  } catch (...) {
  }
}

int own_active() { return LiveSession::instance().active() ? 1 : 0; }
void own_step(std::uint64_t number) { log_mark(number, MarkSource::kStep); }
void own_push(const char* name, gpudiag_cause cause) {
  log_push(kApiDomain, view(name), RangeSource::kUser, cause_code(cause), 0);
}
void own_pop() { log_pop(kApiDomain); }
void own_annotate(const char* name, gpudiag_cause cause, std::int64_t start_ns, std::int64_t end_ns) {
  log_range(view(name), RangeSource::kUser, cause_code(cause), {start_ns}, {end_ns}, 0);
}
void own_mark(gpudiag_mark_kind kind, gpudiag_phase phase, std::uint64_t number) {
  if (kind != GPUDIAG_MARK_STEP && kind != GPUDIAG_MARK_OPTIMIZER) return;
  if (phase != GPUDIAG_PHASE_TRAIN && phase != GPUDIAG_PHASE_EVALUATION) return;
  log_mark(number, static_cast<MarkSource>(kind), phase == GPUDIAG_PHASE_EVALUATION ? record_flag::kEvaluation : std::uint16_t{0});
}
static_assert(static_cast<int>(MarkSource::kStep) == GPUDIAG_MARK_STEP);
static_assert(static_cast<int>(MarkSource::kOptimizer) == GPUDIAG_MARK_OPTIMIZER);

std::size_t own_take_iterations(gpudiag_iteration* iterations, std::size_t capacity, int timeout_ms) {
  try {
    return LiveSession::instance().latest().take(iterations, capacity, timeout_ms);
  } catch (...) {
    return 0;
  }
}

std::size_t own_report(char* text, std::size_t capacity) {
  try {
    if (!LiveSession::instance().ever_started()) return 0;
    const std::string report = LiveSession::instance().latest().recent().report();
    if (text != nullptr && capacity > report.size()) std::memcpy(text, report.c_str(), report.size() + 1);
    return report.size() + 1;
  } catch (...) {
    return 0;
  }
}

void own_stand_aside(const char* who) {
  try {
    LiveSession::instance().stand_aside(view(who));
  } catch (...) {
  }
}
void own_resume() {
  try {
    LiveSession::instance().resume();
  } catch (...) {
  }
}
unsigned own_take_asides() { return LiveSession::instance().take_asides(); }

void own_annotate_from(gpudiag_range_source source, const char* name, std::int64_t start_ns, std::int64_t end_ns) {
  if (source != GPUDIAG_RANGE_USER && source != GPUDIAG_RANGE_ANNOTATION && source != GPUDIAG_RANGE_OPERATOR &&
      source != GPUDIAG_RANGE_PYTHON)
    return;
  log_range(view(name), static_cast<RangeSource>(source), 0, {start_ns}, {end_ns}, 0);
}
static_assert(static_cast<int>(RangeSource::kUser) == GPUDIAG_RANGE_USER);
static_assert(static_cast<int>(RangeSource::kAnnotation) == GPUDIAG_RANGE_ANNOTATION);
static_assert(static_cast<int>(RangeSource::kOperator) == GPUDIAG_RANGE_OPERATOR);
static_assert(static_cast<int>(RangeSource::kPython) == GPUDIAG_RANGE_PYTHON);

int own_last(gpudiag_iteration* iteration) {
  return iteration != nullptr && LiveSession::instance().latest().get(*iteration) ? 1 : 0;
}
void own_on_iteration(gpudiag_iteration_callback callback, void* user) {
  LiveSession::instance().latest().set_callback(callback, user);
}

constinit Table g_table{sizeof(Table), nullptr, adopt,    own_start,    own_stop, own_active,
                        own_step,      own_push, own_pop, own_annotate, own_last, own_on_iteration,
                        own_mark,      own_take_iterations, own_report, own_annotate_from, own_stand_aside, own_resume,
                        own_take_asides};

/// Whether another copy's table, perhaps of an older version, has the member at `offset`.
bool has_member(const Table& table, std::size_t offset) { return table.size >= offset + sizeof(void*); }

}  // namespace
}  // namespace gpudiag

extern "C" {

using namespace gpudiag;

gpudiag_api_v1_table* gpudiag_api_v1(void) { return &g_table; }

void gpudiag_options_init(gpudiag_options* options, std::size_t size) {
  if (options == nullptr || size < sizeof options->size) return;
  const gpudiag_options blank = blank_options();
  std::memcpy(options, &blank, std::min(size, sizeof blank));
  if (size > sizeof blank) std::memset(reinterpret_cast<char*>(options) + sizeof blank, 0, size - sizeof blank);
  options->size = size;
}

gpudiag_status gpudiag_start(const gpudiag_options* options) {
  const gpudiag_status status = own_start(options);
  if (status == GPUDIAG_OK) g_started_by_program.store(true, std::memory_order_relaxed);
  return status;
}

void gpudiag_stop(void) {
  // Before the flag is taken: the program's own stop is still to come.
  if (LiveSession::instance().refuses_own_thread()) return;
  if (!g_started_by_program.exchange(false, std::memory_order_relaxed)) return;
  if (const auto* table = target()) table->stop();
}
int gpudiag_active(void) {
  const auto* table = target();
  return table != nullptr ? table->active() : 0;
}
int gpudiag_version(void) { return GPUDIAG_API_VERSION; }

void gpudiag_step(void) {
  if (const auto* table = target()) table->step(kNoIndex);
}
void gpudiag_step_number(std::uint64_t number) {
  if (const auto* table = target()) table->step(number);
}
void gpudiag_mark(gpudiag_mark_kind kind, gpudiag_phase phase, std::uint64_t number) {
  const auto* table = target();
  if (table == nullptr) return;
  if (has_member(*table, offsetof(Table, mark))) table->mark(kind, phase, number);
  else if (kind == GPUDIAG_MARK_STEP && phase == GPUDIAG_PHASE_TRAIN) table->step(number);
}
void gpudiag_range_push(const char* name, gpudiag_cause cause) {
  if (const auto* table = target()) table->range_push(name, cause);
}
void gpudiag_range_pop(void) {
  if (const auto* table = target()) table->range_pop();
}
void gpudiag_annotate(const char* name, gpudiag_cause cause, std::int64_t start_ns, std::int64_t end_ns) {
  if (const auto* table = target()) table->annotate(name, cause, start_ns, end_ns);
}
void gpudiag_annotate_from(gpudiag_range_source source, const char* name, std::int64_t start_ns, std::int64_t end_ns) {
  const auto* table = target();
  if (table == nullptr) return;
  if (has_member(*table, offsetof(Table, annotate_from))) table->annotate_from(source, name, start_ns, end_ns);
  else table->annotate(name, GPUDIAG_CAUSE_NONE, start_ns, end_ns);
}
std::int64_t gpudiag_now_ns(void) { return now().ns; }
int gpudiag_last(gpudiag_iteration* iteration) {
  // Also after the session: the table of this copy is good for that.
  const auto* table = target();
  return table != nullptr ? table->last(iteration) : own_last(iteration);
}
void gpudiag_on_iteration(gpudiag_iteration_callback callback, void* user) {
  const auto* table = target();
  if (table != nullptr) table->on_iteration(callback, user);
  else own_on_iteration(callback, user);
}
std::size_t gpudiag_take_iterations(gpudiag_iteration* iterations, std::size_t capacity, int timeout_ms) {
  // Like gpudiag_last(): what closed at the end of a session can be taken after it.
  const auto* table = target();
  if (table != nullptr && !has_member(*table, offsetof(Table, take_iterations))) return 0;
  return table != nullptr ? table->take_iterations(iterations, capacity, timeout_ms)
                          : own_take_iterations(iterations, capacity, timeout_ms);
}

std::size_t gpudiag_report(char* text, std::size_t capacity) {
  const auto* table = target();
  if (table != nullptr && !has_member(*table, offsetof(Table, report))) return 0;
  return table != nullptr ? table->report(text, capacity) : own_report(text, capacity);
}

void gpudiag_stand_aside(const char* who) {
  const auto* table = target();
  if (table == nullptr) own_stand_aside(who);
  else if (has_member(*table, offsetof(Table, stand_aside))) table->stand_aside(who);
}
void gpudiag_resume(void) {
  const auto* table = target();
  if (table == nullptr) own_resume();
  else if (has_member(*table, offsetof(Table, resume))) table->resume();
}

/* For libgpudiag_inject.so, which forwards the entry points of the driver and of NVTX. */

/* 1 where a session runs or is not wanted, 0 where it failed (which has been said). */
GPUDIAG_API int gpudiag_inject_cuda(void) { return own_start(nullptr) == GPUDIAG_FAILED ? 0 : 1; }

/* Always 1: NVTX would unload the injected library, and ours stays for good. */
GPUDIAG_API int gpudiag_inject_nvtx(const void* (*get_export_table)(std::uint32_t)) {
  try {
    std::vector<std::string> complaints;
    const Settings settings = read_settings({}, environment_variable, complaints);  // said at the session's start
    if (settings.enabled && settings.nvtx) attach_nvtx(get_export_table);
  } catch (...) {
  }
  return 1;
}
GPUDIAG_API int gpudiag_inject_nvtx_extension(void* module) {
  try {
    std::vector<std::string> complaints;
    const Settings settings = read_settings({}, environment_variable, complaints);
    if (settings.enabled && settings.nvtx) attach_nvtx_extension(module);
  } catch (...) {
  }
  return 1;
}

/* The events that we want of NCCL's profiler interface; 0: none. */
GPUDIAG_API int gpudiag_inject_nccl_wanted(void) {
  try {
    if (LiveSession::instance().forked()) return 0;
    std::vector<std::string> complaints;
    const Settings settings = read_settings({}, environment_variable, complaints);
    if (!settings.enabled || settings.nccl == Choice::kOff) return 0;
    set_host_log(true);  // as with NVTX: what was said before the session starts is known to it
    return kNcclEventColl | kNcclEventP2p;
  } catch (...) {
    return 0;
  }
}
/* [hot] */
GPUDIAG_API void gpudiag_inject_nccl_event(const gpudiag_nccl_event* event) {
  if (event != nullptr) take_nccl_event(*event);
}
}
