// SPDX-License-Identifier: Apache-2.0
//
// The program's NVTX ranges in the truth: what stands between NVTX and a tool that is attached to it.
//
//   program → NVTX header → **this library** → the tool that SIMGPU_NVTX_NEXT names
//                                            ↘ truth (core/truth.hpp)
//
// NVTX_INJECTION64_PATH names this library. It lets the tool put its functions into NVTX's table, as
// NVTX itself would have, and then puts its own in front of those that open and close a thread's ranges.
#include <dlfcn.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// As a tool: the types of the table to attach to, no NVTX of our own.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "../core/listener.hpp"
#include "../core/truth.hpp"

namespace {

using PushA = int (*)(const char*);
using PushEx = int (*)(const nvtxEventAttributes_t*);
using Pop = int (*)();
using Initialise = int (*)(NvtxGetExportTableFunc_t);

struct Next {
  PushA push_a = nullptr;
  PushEx push_ex = nullptr;
  Pop pop = nullptr;
};
Next g_next;  // written before NVTX calls any of ours

struct Open {
  std::string name;
  std::int64_t start_ns;
  long switches;
};

// Leaked per thread on purpose: ranges may be closed by destructors of other thread locals.
std::vector<Open>& open_ranges() {
  static thread_local std::vector<Open>* ranges = nullptr;
  if (ranges == nullptr) ranges = new std::vector<Open>;
  return *ranges;
}

// How often the calling thread has given up the processor, since it had to wait.
long switches() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

void open(const char* name) {
  const long before = switches();
  open_ranges().push_back({name == nullptr ? "" : name, simgpu::now_ns(), before});
}

int push_a(const char* name) {
  open(name);
  return g_next.push_a != nullptr ? g_next.push_a(name) : 0;
}

int push_ex(const nvtxEventAttributes_t* event) {
  const bool plain = event != nullptr && event->messageType == NVTX_MESSAGE_TYPE_ASCII;
  open(plain ? event->message.ascii : nullptr);
  return g_next.push_ex != nullptr ? g_next.push_ex(event) : 0;
}

int pop() {
  const int level = g_next.pop != nullptr ? g_next.pop() : 0;
  const std::int64_t end_ns = simgpu::now_ns();
  std::vector<Open>& ranges = open_ranges();
  if (ranges.empty()) return level;
  const Open& range = ranges.back();
  simgpu::truth_range(range.name, range.start_ns, end_ns, switches() - range.switches);
  ranges.pop_back();
  return level;
}

void attach_next(NvtxGetExportTableFunc_t get_table) {
  const char* path = std::getenv("SIMGPU_NVTX_NEXT");
  if (path == nullptr || *path == '\0') return;
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  void* function =
      library == nullptr ? nullptr : dlsym(library, "InitializeInjectionNvtx2");
  if (function == nullptr) {
    std::fprintf(stderr, "simgpu: SIMGPU_NVTX_NEXT='%s' cannot be used: %s\n", path, dlerror());
    return;
  }
  reinterpret_cast<Initialise>(function)(get_table);
}

// NVTX's functions that begin and end ranges of a thread.
class Core {
 public:
  explicit Core(NvtxGetExportTableFunc_t get_table) {
    const auto* callbacks =
        static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return;
    if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions_, &size_) != 1) size_ = 0;
  }

  bool there() const { return size_ > NVTX_CBID_CORE_RangePop; }
  NvtxFunctionPointer get(unsigned slot) const { return *functions_[slot]; }

  // Puts `function` into the slot and returns what a tool has put there since it held `before`. What
  // NVTX itself has there until a tool is attached would only lead back to us.
  template <typename Function>
  Function wrap(unsigned slot, Function function, NvtxFunctionPointer before) const {
    const NvtxFunctionPointer now = *functions_[slot];
    *functions_[slot] = reinterpret_cast<NvtxFunctionPointer>(function);
    return now == before ? nullptr : reinterpret_cast<Function>(now);
  }

 private:
  NvtxFunctionTable functions_ = nullptr;
  unsigned size_ = 0;
};

}  // namespace

// Returns 1 on success, as NVTX asks.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  if (get_table == nullptr) return 0;
  const Core core(get_table);
  if (!core.there()) return 0;
  const NvtxFunctionPointer push_a_before = core.get(NVTX_CBID_CORE_RangePushA);
  const NvtxFunctionPointer push_ex_before = core.get(NVTX_CBID_CORE_RangePushEx);
  const NvtxFunctionPointer pop_before = core.get(NVTX_CBID_CORE_RangePop);
  attach_next(get_table);
  simgpu::start_truth();
  if (!simgpu::truth_enabled()) return 1;
  g_next.push_a = core.wrap(NVTX_CBID_CORE_RangePushA, push_a, push_a_before);
  g_next.push_ex = core.wrap(NVTX_CBID_CORE_RangePushEx, push_ex, push_ex_before);
  g_next.pop = core.wrap(NVTX_CBID_CORE_RangePop, pop, pop_before);
  return 1;
}
