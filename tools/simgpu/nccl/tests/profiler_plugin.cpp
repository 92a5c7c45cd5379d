// SPDX-License-Identifier: Apache-2.0
//
// A profiler plugin that writes down how NCCL calls it. PLUGIN_NEWEST is the newest version it has, 4 its
// oldest; PLUGIN_MASK in the environment is the mask of events that it asks for.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "nccl/profiler_abi.hpp"

using namespace simgpu::nccl;

namespace {

std::mutex g_mutex;
std::string g_log;
int g_handles = 0;

void tell(const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard guard(g_mutex);
  g_log += line;
  g_log += '\n';
}

int wanted() {
  const char* text = std::getenv("PLUGIN_MASK");
  return text == nullptr ? 0 : std::atoi(text);
}

void* next_handle() {
  const std::lock_guard guard(g_mutex);
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(++g_handles));
}

int init(int version, void** context, int* mask, int ranks, int rank) {
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(rank + 100));
  *mask = wanted();
  tell("init v%d ranks=%d rank=%d", version, ranks, rank);
  return std::getenv("PLUGIN_FAILS") == nullptr ? 0 : 3;
}

[[maybe_unused]] int init_new(void** context, std::uint64_t, int* mask, const char*, int, int ranks, int rank, Logger) {
  return init(PLUGIN_NEWEST, context, mask, ranks, rank);
}
[[maybe_unused]] int start_new(void* context, void** handle, EventDescription* event) {
  const int rank = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 100;
  *handle = next_handle();
  switch (event->type) {
    case kGroup: tell("start group rank=%d", rank); break;
    case kColl:
      tell("start coll rank=%d %s #%d count=%d %s %s %s channels=%d", rank, event->coll.function,
           static_cast<int>(event->coll.number), static_cast<int>(event->coll.count), event->coll.type,
           event->coll.algorithm, event->coll.protocol, event->coll.channels);
      break;
    case kP2p:
      tell("start p2p rank=%d %s peer=%d count=%d", rank, event->p2p.function, event->p2p.peer,
           static_cast<int>(event->p2p.count));
      break;
    case kGroupApi: tell("start group_api depth=%d", event->group_api.depth); break;
    case kCollApi: tell("start coll_api %s captured=%d", event->coll_api.function, event->coll_api.captured); break;
    case kP2pApi: tell("start p2p_api %s", event->p2p_api.function); break;
    case kKernelLaunch: tell("start kernel_launch"); break;
    default: tell("start of an unknown type");
  }
  return 0;
}
int init_old(void** context, int* mask, const char*, std::uint64_t, int, int ranks, int rank, Logger) {
  return init(4, context, mask, ranks, rank);
}
int start_old(void*, void** handle, EventDescription4* event) {
  *handle = next_handle();
  if (event->type == kColl) tell("start coll %s #%d count=%d", event->coll.function, static_cast<int>(event->coll.number), static_cast<int>(event->coll.count));
  else tell("start of type %d", static_cast<int>(event->type));
  return 0;
}
int stop(void*) {
  tell("stop");
  return 0;
}
int record(void*, int state, void*) {
  tell("state %d", state);
  return 0;
}
int finalize(void* context) {
  tell("finalize rank=%d", static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 100);
  return 0;
}

}  // namespace

extern "C" {
#if PLUGIN_NEWEST >= 6
__attribute__((visibility("default"))) Profiler ncclProfiler_v6{"test", init_new, start_new, stop, record, finalize};
#endif
__attribute__((visibility("default"))) Profiler4 ncclProfiler_v4{"test", init_old, start_old, stop, record, finalize};

__attribute__((visibility("default"))) const char* plugin_log();
const char* plugin_log() {
  static std::string taken;
  const std::lock_guard guard(g_mutex);
  taken = g_log;
  g_log.clear();
  return taken.c_str();
}
}
