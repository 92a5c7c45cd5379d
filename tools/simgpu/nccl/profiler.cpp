// SPDX-License-Identifier: Apache-2.0
#include "nccl/profiler.hpp"

#include <dlfcn.h>
#include <strings.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "nccl/communicator.hpp"
#include "nccl/profiler_abi.hpp"

namespace simgpu::nccl {
namespace {

constexpr std::size_t kLongestName = 254;  // longer ones are cut, as NCCL does

enum class State { kReady, kLoaded, kFailed };

struct Plugin {
  std::mutex mutex;
  State state = State::kReady;  // kFailed is for good
  void* library = nullptr;
  int users = 0;
  std::atomic<const Profiler*> calls{nullptr};
  std::atomic<int> mask{0};     // one for all communicators: the newest init's
};

Plugin& plugin() {
  static auto* const kPlugin = new Plugin;  // leaked, as all state of the simulation
  return *kPlugin;
}

const Profiler4* g_version4 = nullptr;

// Version 4 behind the newest version's calls.
int init4(void** context, std::uint64_t communicator, int* mask, const char* name, int nodes, int ranks, int rank,
          Logger log) {
  return g_version4->init(context, mask, name, communicator, nodes, ranks, rank, log);
}
int start4(void* context, void** handle, EventDescription* event) {
  EventDescription4 old{};
  old.type = static_cast<std::uint8_t>(event->type);
  old.parent = event->parent;
  old.rank = event->rank;
  switch (event->type) {
    case kGroup:
      break;
    case kColl: {
      const CollEvent& coll = event->coll;
      old.parent = coll.group;
      old.coll = {coll.number, coll.function, coll.send,     coll.receive, coll.count,     coll.root,
                  coll.type,   coll.channels, coll.warps, coll.algorithm, coll.protocol};
      break;
    }
    case kP2p: {
      const P2pEvent& p2p = event->p2p;
      old.parent = p2p.group;
      old.p2p = {p2p.function, p2p.memory, p2p.type, p2p.count, p2p.peer, p2p.channels};
      break;
    }
    default:
      return kSuccess;
  }
  return g_version4->start_event(context, handle, &old);
}
int stop4(void* handle) { return g_version4->stop_event(handle); }
int record4(void*, int, void*) { return kSuccess; }  // of the states of groups it knows nothing
int finalize4(void* context) { return g_version4->finalize(context); }

const Profiler kVersion4{"", init4, start4, stop4, record4, finalize4};

void log(int, unsigned long, const char*, int, const char*, ...) {}

void* open_library(const std::string& name) {
  if (name.empty()) return nullptr;
  const bool program = strncasecmp(name.c_str(), "STATIC_PLUGIN", name.size()) == 0;
  return dlopen(program ? nullptr : name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

// A file, a library's name, or the middle of libnccl-profiler-NAME.so.
void* find_library(const char* given) {
  const std::string name = given == nullptr ? "" : given;
  if (name.empty()) return open_library("libnccl-profiler.so");
  if (void* library = open_library(name.substr(0, kLongestName))) return library;
  const bool is_library = name.starts_with("lib") && name.ends_with(".so");
  if (name.find('/') != std::string::npos || is_library) return nullptr;
  return open_library(("libnccl-profiler-" + name + ".so").substr(0, kLongestName));
}

const Profiler* find_calls(void* library) {
  for (const char* name : {"ncclProfiler_v6", "ncclProfiler_v5"})
    if (void* found = dlsym(library, name)) return static_cast<const Profiler*>(found);
  g_version4 = static_cast<const Profiler4*>(dlsym(library, "ncclProfiler_v4"));
  return g_version4 == nullptr ? nullptr : &kVersion4;
}

// One user more; false where there is no plugin.
bool load(Plugin& of) {
  const std::lock_guard guard(of.mutex);
  if (of.state == State::kFailed) return false;
  if (of.state == State::kReady) {
    const char* name = std::getenv("NCCL_PROFILER_PLUGIN");
    const bool none = name != nullptr && strcasecmp(name, "none") == 0;
    of.library = none ? nullptr : find_library(name);
    const Profiler* calls = of.library == nullptr ? nullptr : find_calls(of.library);
    if (calls == nullptr) {
      if (of.library != nullptr) dlclose(of.library);
      of.library = nullptr;
      of.state = State::kFailed;
      return false;
    }
    of.calls.store(calls);
    of.state = State::kLoaded;
  }
  ++of.users;
  return true;
}

void unload(Plugin& of) {
  const std::lock_guard guard(of.mutex);
  if (--of.users > 0) return;
  of.calls.store(nullptr);
  dlclose(std::exchange(of.library, nullptr));
  of.state = State::kReady;
}

bool is_transfer(TaskKind kind) { return kind == TaskKind::send || kind == TaskKind::receive; }

// What NCCL keeps for each thread.
struct ThreadState {
  void* group = nullptr;
  bool in_group = false;
  enum class Stage { kReset, kStarted, kStopped } stage = Stage::kReset;
};
ThreadState& of_thread() {
  static thread_local ThreadState state;
  return state;
}

// Any of these makes NCCL tell of groups and calls too.
constexpr int kAnyOfCalls = kGroupApi | kP2pApi | kCollApi | kKernelLaunch | kGroup | kColl | kP2p | kProxyOp |
                            kProxyStep | kKernelCh | kNetPlugin;
constexpr int kBelowTask = kProxyOp | kProxyStep | kKernelCh | kNetPlugin;

void record_group_state(int state) {
  const Profiler* calls = plugin().calls.load();
  if (calls != nullptr && of_thread().group != nullptr) calls->record_event_state(of_thread().group, state, nullptr);
}

}  // namespace

const char* profiler_function(TaskKind kind) {
  switch (kind) {
    case TaskKind::all_reduce: return "AllReduce";
    case TaskKind::all_gather: return "AllGather";
    case TaskKind::reduce_scatter: return "ReduceScatter";
    case TaskKind::broadcast: return "Broadcast";
    case TaskKind::reduce: return "Reduce";
    case TaskKind::all_to_all: return "AlltoAll";
    case TaskKind::gather: return "Gather";
    case TaskKind::scatter: return "Scatter";
    case TaskKind::send: return "Send";
    case TaskKind::receive: return "Recv";
  }
  return "Invalid";
}

const char* profiler_type(DataType type) {
  switch (type) {
    case kInt8: return "ncclInt8";
    case kInt32: return "ncclInt32";
    case kUint32: return "ncclUint32";
    case kInt64: return "ncclInt64";
    case kUint64: return "ncclUint64";
    case kFloat16: return "ncclFloat16";
    case kFloat32: return "ncclFloat32";
    case kFloat64: return "ncclFloat64";
    case kBfloat16: return "ncclBfloat16";
    case kFloat8e4m3: return "ncclFloat8e4m3";
    case kFloat8e5m2: return "ncclFloat8e5m2";
    default: return "Unknown";  // NCCL forgets unsigned bytes
  }
}

void open_profiler(ProfilerContext& context, std::uint64_t communicator, std::uint32_t ranks, std::uint32_t rank) {
  Plugin& of = plugin();
  if (!load(of)) return;
  int mask = of.mask.load();
  const int failed = of.calls.load()->init(&context.context, communicator, &mask, nullptr, 1,
                                           static_cast<int>(ranks), static_cast<int>(rank), log);
  of.mask.store(mask);
  if (failed != kSuccess) return unload(of);
  context.opened = true;
}

void close_profiler(ProfilerContext& context) {
  if (!std::exchange(context.opened, false)) return;
  Plugin& of = plugin();
  if (const Profiler* calls = of.calls.load(); calls != nullptr && context.context != nullptr)
    calls->finalize(context.context);
  unload(of);
}

ProfiledCall::ProfiledCall(Communicator& communicator, cudaStream_t stream, const Task& task, int group_depth) {
  const Profiler* calls = plugin().calls.load();
  const int mask = plugin().mask.load();
  if (calls == nullptr || !communicator.profiler().opened) return;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  const bool captured = status != cudaStreamCaptureStatusNone;
  void* context = communicator.profiler().context;
  ThreadState& thread = of_thread();
  if ((mask & kAnyOfCalls) != 0 && !thread.in_group) {
    EventDescription event{};
    event.type = kGroupApi;
    event.group_api = {captured, group_depth + 1};  // NCCL opens one itself
    calls->start_event(context, &thread.group, &event);
    thread.in_group = true;
    thread.stage = ThreadState::Stage::kStarted;
  }
  if (thread.stage == ThreadState::Stage::kStarted) {
    thread.stage = ThreadState::Stage::kStopped;
    record_group_state(kGroupStartApiStop);
  }
  EventDescription event{};
  event.parent = thread.group;
  if (is_transfer(task.kind)) {
    if ((mask & (kP2pApi | kP2p | kBelowTask)) == 0) return;
    event.type = kP2pApi;
    event.p2p_api = {profiler_function(task.kind), task.count, profiler_type(task.type), stream, captured};
  } else {
    if ((mask & (kCollApi | kColl | kBelowTask)) == 0) return;
    event.type = kCollApi;
    event.coll_api = {profiler_function(task.kind), task.count, profiler_type(task.type),
                      static_cast<int>(task.peer),  stream,     captured};
  }
  calls->start_event(context, &handle_, &event);
}

ProfiledCall::~ProfiledCall() {
  const Profiler* calls = plugin().calls.load();
  if (calls != nullptr && handle_ != nullptr) calls->stop_event(handle_);
}

void profile_group_end_begins() {
  ThreadState& thread = of_thread();
  thread.in_group = false;
  if (thread.stage != ThreadState::Stage::kStopped) return;
  thread.stage = ThreadState::Stage::kReset;
  record_group_state(kGroupEndApiStart);
}

void profile_group_end_ends() {
  const Profiler* calls = plugin().calls.load();
  void* group = std::exchange(of_thread().group, nullptr);
  if (calls != nullptr && group != nullptr) calls->stop_event(group);
}

void* profile_launch_begins(const Plan& plan, cudaStream_t stream) {
  const Profiler* calls = plugin().calls.load();
  if (calls == nullptr || (plugin().mask.load() & kKernelLaunch) == 0) return nullptr;
  EventDescription event{};
  event.type = kKernelLaunch;
  event.parent = of_thread().group;
  event.kernel_launch = {stream};
  void* handle = nullptr;
  calls->start_event(plan.communicator->profiler().context, &handle, &event);
  return handle;
}

void profile_launch_ends(void* handle) {
  const Profiler* calls = plugin().calls.load();
  if (calls != nullptr && handle != nullptr) calls->stop_event(handle);
}

void profile_plan(const Plan& plan) {
  Communicator& communicator = *plan.communicator;
  ProfilerContext& own = communicator.profiler();
  const Profiler* calls = plugin().calls.load();
  const int mask = own.opened && calls != nullptr && !plan.captured ? plugin().mask.load() : 0;
  void* group = nullptr;
  if ((mask & (kGroup | kColl | kP2p | kBelowTask)) != 0) {
    EventDescription event{};
    event.type = kGroup;
    calls->start_event(own.context, &group, &event);
  }
  std::vector<void*> handles;
  for (const Task& task : plan.tasks) {
    const bool transfer = is_transfer(task.kind);
    std::uint64_t& number = own.numbers[static_cast<std::size_t>(task.kind)];
    if ((mask & (kBelowTask | (transfer ? kP2p : kColl))) != 0) {
      EventDescription event{};
      event.type = transfer ? kP2p : kColl;
      event.rank = static_cast<int>(communicator.rank());
      const auto blocks = static_cast<std::uint8_t>(channels(plan));
      const char* function = profiler_function(task.kind);
      const char* type = profiler_type(task.type);
      auto* output = const_cast<std::byte*>(task.kind == TaskKind::send ? task.input : task.output);
      if (transfer) {
        event.p2p = {function, output, type, task.count, static_cast<int>(task.peer), blocks, group};
      } else {
        event.coll = {number, function, task.input, output, task.count, static_cast<int>(task.peer), type, blocks,
                      static_cast<std::uint8_t>(kThreads / 32), "RING", "LL", group};
      }
      void* handle = nullptr;
      calls->start_event(own.context, &handle, &event);
      handles.push_back(handle);
    }
    if (!transfer && !plan.captured) ++number;
  }
  for (void* handle : handles)
    if (handle != nullptr) calls->stop_event(handle);
  if (group != nullptr) calls->stop_event(group);
}

}  // namespace simgpu::nccl
