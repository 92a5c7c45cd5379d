// SPDX-License-Identifier: Apache-2.0
// What is marked [hot] neither allocates nor locks: both are counted here, by standing in for the
// functions that do it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "sources/cupti/buffer_pool.hpp"
#include "sources/cupti/callbacks.hpp"
#include "sources/host/thread_log.hpp"
#include "sources/nvtx/nvtx_objects.hpp"

namespace {

std::atomic<std::uint64_t> g_allocations{0};
std::atomic<std::uint64_t> g_locks{0};

}  // namespace

// GoogleTest and the library share this program, so these count for both; only the difference across
// the calls under test is looked at.
void* operator new(std::size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++g_locks;
  return real(mutex);
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
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    delete new int{1};
    ::operator delete(::operator new(1));
  });
  EXPECT_GE(counts.allocations, 1000u);
  EXPECT_EQ(counts.locks, 1000u);
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
