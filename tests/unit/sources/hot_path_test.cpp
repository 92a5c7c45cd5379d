// SPDX-License-Identifier: Apache-2.0
// What is marked [hot] neither allocates nor locks: both are counted here, by standing in for the
// functions that do it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "sources/cupti/buffer_pool.hpp"
#include "sources/cupti/callbacks.hpp"
#include "sources/host/thread_log.hpp"
#include "sources/nccl/nccl_calls.hpp"
#include "sources/nccl/profiler_abi.h"
#include "sources/nvtx/nvtx_objects.hpp"
#include "sources/nvtx/nvtx_source.hpp"

namespace {

std::atomic<std::uint64_t> g_allocations{0};
std::atomic<std::uint64_t> g_locks{0};

}  // namespace

// GoogleTest and the library share this program, so these count for both; only the difference across
// the calls under test is looked at. `new` comes down to malloc too.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);

void* malloc(std::size_t size) {
  ++g_allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++g_allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  ++g_allocations;
  return __libc_realloc(memory, size);
}
}

namespace {

template <typename Lock>
int counted_lock(const char* name, Lock* lock) {
  ++g_locks;
  using Function = int (*)(Lock*);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name))(lock);
}

}  // namespace

extern "C" {
int pthread_mutex_lock(pthread_mutex_t* lock) { return counted_lock("pthread_mutex_lock", lock); }
int pthread_mutex_trylock(pthread_mutex_t* lock) { return counted_lock("pthread_mutex_trylock", lock); }
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) { return counted_lock("pthread_rwlock_rdlock", lock); }
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) { return counted_lock("pthread_rwlock_wrlock", lock); }
}

namespace gpudiag {
namespace {

struct Counts {
  std::uint64_t allocations;
  std::uint64_t locks;
};

/// After a first call, which may make the thread's log.
template <typename Call>
Counts counted(Call&& call) {
  set_host_log(true);
  call();
  ThreadLogs::drain([](const HostMessage&, std::string_view) {});
  const std::uint64_t allocations = g_allocations;
  const std::uint64_t locks = g_locks;
  for (int i = 0; i < 1000; ++i) call();
  const Counts counts{g_allocations - allocations, g_locks - locks};
  set_host_log(false);
  return counts;
}

void expect_none(const Counts& counts) {
  EXPECT_EQ(counts.allocations, 0u);
  EXPECT_EQ(counts.locks, 0u);
}

TEST(HotPath, TheCountersCount) {
  const Counts counts = counted([] {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_rdlock(&shared);
    pthread_rwlock_unlock(&shared);
    ::operator delete(::operator new(1));
    std::free(std::malloc(1));
  });
  EXPECT_GE(counts.allocations, 2000u);
  EXPECT_GE(counts.locks, 2000u);
}

TEST(HotPath, RangesAndMarksNeitherAllocateNorLock) {
  expect_none(counted([] {
    log_push(0, "a range with a name that no small string would hold in place", RangeSource::kUser, 1, 2);
    log_pop(0);
    log_mark(1, MarkSource::kStep);
    log_range("after the fact", RangeSource::kUser, 0, {1}, {2}, 0);
  }));
}

TEST(HotPath, AFullLogNeitherAllocatesNorLocks) {
  set_host_log(true);
  for (int i = 0; i < 10'000; ++i) log_mark(1, MarkSource::kStep);
  expect_none(counted([] { log_mark(1, MarkSource::kStep); }));
}

TEST(HotPath, StartedRangesNeitherAllocateNorLock) {
  static OpenRanges ranges;
  expect_none(counted([] { ranges.end(ranges.start("prefetch", 0)); }));
}

/// As NVTX hands them to a tool: pointers to the pointers that a program's calls go through.
NvtxFunctionPointer g_core[NVTX_CBID_CORE_SIZE];
NvtxFunctionPointer* g_core_table[NVTX_CBID_CORE_SIZE];

int core_table(NvtxCallbackModule module, NvtxFunctionTable* table, unsigned int* size) {
  if (module != NVTX_CB_MODULE_CORE) return 0;
  for (std::size_t i = 0; i < NVTX_CBID_CORE_SIZE; ++i) g_core_table[i] = &g_core[i];
  *table = g_core_table;
  *size = NVTX_CBID_CORE_SIZE;
  return 1;
}

const void* nvtx_table(std::uint32_t id) {
  static const NvtxExportTableCallbacks callbacks{sizeof callbacks, core_table};
  return id == NVTX_ETID_CALLBACKS ? &callbacks : nullptr;
}

template <typename Function>
Function nvtx(int id) {
  return reinterpret_cast<Function>(g_core[id]);
}

TEST(HotPath, NvtxCallsNeitherAllocateNorLock) {
  ASSERT_TRUE(attach_nvtx(nvtx_table));
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = "a range whose name fits into no small string";
  expect_none(counted([&] {
    nvtx<int (*)(const char*)>(NVTX_CBID_CORE_RangePushA)("forward");
    nvtx<int (*)(const wchar_t*)>(NVTX_CBID_CORE_RangePushW)(L"layer \u03b1");
    nvtx<int (*)(const nvtxEventAttributes_t*)>(NVTX_CBID_CORE_RangePushEx)(&event);
    for (int i = 0; i < 3; ++i) nvtx<int (*)()>(NVTX_CBID_CORE_RangePop)();
    nvtx<void (*)(const char*)>(NVTX_CBID_CORE_MarkA)("step");
    nvtx<void (*)(nvtxRangeId_t)>(NVTX_CBID_CORE_RangeEnd)(
        nvtx<nvtxRangeId_t (*)(const char*)>(NVTX_CBID_CORE_RangeStartA)("prefetch"));
  }));
}

TEST(HotPath, WhatNcclTellsNeitherAllocatesNorLocks) {
  gpudiag_nccl_event event{};
  event.size = sizeof event;
  event.type = kNcclEventColl;
  event.function = "AllReduce";
  event.datatype = "ncclFloat32";
  const std::uint64_t words[3] = {1, 4096, 0};
  expect_none(counted([&] {
    take_nccl_event(event);
    take_nccl_range("ncclAllReduce", words, sizeof words);
  }));
}

TEST(HotPath, ApiCallbacksNeitherAllocateNorLock) {
  std::uint64_t scratch = 0;
  CUpti_CallbackData data{};
  data.correlationData = &scratch;
  expect_none(counted([&] {
    data.callbackSite = CUPTI_API_ENTER;
    on_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, 20, &data);
    data.callbackSite = CUPTI_API_EXIT;
    on_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, 20, &data);
  }));
}

TEST(HotPath, BuffersChangeHandsWithoutAllocationOrLock) {
  static BufferPool pool{4};
  expect_none(counted([] { pool.give_back(pool.take(), 0); }));
}

}  // namespace
}  // namespace gpudiag
