// SPDX-License-Identifier: Apache-2.0
//
// A training loop beside another profiler of its own process, which uses CUPTI as PyTorch's does: its clock
// is the cycle counter, it takes the buffers when its session begins and leaves them registered when it ends.
//
//   neighbour ITERATIONS BEGIN END [told] [asked] [finalize] [twice] [mute]
//
// Its session lasts from iteration BEGIN to END. `told`: gpudiag is told before and after, if it is there;
// `asked`: only afterwards; `finalize`: CUPTI is detached at the end of a session; `twice`: a second session
// as long, after a pause as long.
#include <cupti.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

__global__ void work(float* values, int rounds) {
  float value = values[threadIdx.x];
  for (int i = 0; i < rounds; ++i) value = value * 1.5f + 0.5f;
  values[threadIdx.x] = value;
}

constexpr std::size_t kBuffer = 4 << 20;
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
                                         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME,
                                         CUPTI_ACTIVITY_KIND_OVERHEAD};

std::atomic<int> kernels{0};
std::atomic<int> strange_buffers{0};
std::atomic<int> open_buffers{0};
std::atomic<int> other_records{0};  // of kinds that this profiler has not asked for

void check(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  std::printf("%s: %d\n", what, static_cast<int>(result));
  std::exit(1);
}

std::uint64_t cycles() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 3'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec) * 3;
#endif
}

constexpr std::uint64_t kMagic = 0x6e65696768626f75;

// The magic lies before the buffer, so that one of somebody else's is known by its lack of it.
void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max) {
  auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(4096, kBuffer + 4096));
  std::memcpy(memory + 4096 - sizeof kMagic, &kMagic, sizeof kMagic);
  *buffer = memory + 4096;
  *size = kBuffer;
  *max = 0;
  ++open_buffers;
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size, std::size_t valid) {
  if (size != kBuffer || std::memcmp(buffer - sizeof kMagic, &kMagic, sizeof kMagic) != 0) {
    ++strange_buffers;
    return;
  }
  --open_buffers;
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ++kernels;
    bool asked = false;
    for (const CUpti_ActivityKind kind : kKinds) asked = asked || record->kind == kind;
    if (!asked) ++other_records;
  }
  std::free(buffer - 4096);
}

void tell(const char* function, bool really) {
  void* gpudiag = really ? dlopen("libgpudiag.so.0", RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (gpudiag == nullptr) return;
  void* found = dlsym(gpudiag, function);
  if (found == nullptr) {
    std::printf("no %s\n", function);
  } else if (std::strcmp(function, "gpudiag_resume") == 0) {
    reinterpret_cast<void (*)()>(found)();
  } else {
    reinterpret_cast<void (*)(const char*)>(found)("the neighbour");
  }
}

CUpti_SubscriberHandle subscriber = nullptr;
int refused = 0;

void begin_session() {
  const auto nothing = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
  if (cuptiSubscribe(&subscriber, nothing, nullptr) != CUPTI_SUCCESS) ++refused;
  check(cuptiActivityRegisterTimestampCallback(cycles), "timestamp callback");
  check(cuptiActivityRegisterCallbacks(requested, completed), "register");
  for (const CUpti_ActivityKind kind : kKinds) check(cuptiActivityEnable(kind), "enable");
}

void end_session(bool finalize) {
  cudaDeviceSynchronize();
  check(cuptiActivityFlushAll(0), "flush");
  for (const CUpti_ActivityKind kind : kKinds) check(cuptiActivityDisable(kind), "disable");
  check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "forced flush");
  std::uint8_t per_thread = 0;
  std::size_t size = sizeof per_thread;
  check(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &per_thread), "attribute");
  if (finalize) check(cuptiFinalize(), "finalize");
  else if (refused == 0) check(cuptiUnsubscribe(subscriber), "unsubscribe");
}

}  // namespace

int main(int argc, char** argv) {
  const int iterations = std::atoi(argv[1]);
  const int begin = std::atoi(argv[2]);
  const int end = std::atoi(argv[3]);
  bool told = false, asked = false, finalize = false, twice = false;
  for (int i = 4; i < argc; ++i) {
    told = told || std::strcmp(argv[i], "told") == 0;
    asked = asked || std::strcmp(argv[i], "asked") == 0;
    finalize = finalize || std::strcmp(argv[i], "finalize") == 0;
    twice = twice || std::strcmp(argv[i], "twice") == 0;
  }
  float* values = nullptr;
  cudaMalloc(&values, 1 << 20);
  const int again = twice ? 2 * end - begin : -1;
  for (int i = 0; i < iterations; ++i) {
    if (i == begin || i == again) {
      tell("gpudiag_stand_aside", told);
      begin_session();
    }
    nvtxRangePushA(("iter " + std::to_string(i)).c_str());
    for (int k = 0; k < 8; ++k) work<<<4, 128>>>(values, 100);
    cudaDeviceSynchronize();
    usleep(2000);
    nvtxRangePop();
    if (i + 1 == end || (twice && i + 1 == again + end - begin)) {
      end_session(finalize);
      tell("gpudiag_resume", told || asked);
    }
  }
  std::printf("kernels %d, of others %d, strange buffers %d, open buffers %d, refused %d\n", kernels.load(),
              other_records.load(), strange_buffers.load(), open_buffers.load(), refused);
  return 0;
}
