// SPDX-License-Identifier: Apache-2.0
//
// The control of the overhead measurement: a CUPTI client that asks for the records gpudiag asks for, in
// buffers of the same size, fetches them as often, and throws them away. What a job pays under it is the
// price of CUPTI; what it pays beyond that under gpudiag is ours.
#include <cupti.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "sources/api_class.hpp"

namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr useconds_t kFlushEveryUs = 200'000;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = kBufferBytes;
  *records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
  std::free(buffer);
}

// The functions that gpudiag chooses, one by one.
void choose_functions(CUpti_CallbackDomain domain) {
  constexpr int kHole = 64;
  int hole = 0;
  for (std::uint32_t id = 1; hole < kHole; ++id) {
    const char* name = nullptr;
    if (cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS || name == nullptr) {
      ++hole;
      continue;
    }
    hole = 0;
    const gpudiag::ApiClass api = gpudiag::api_traits(name).api;
    if (api == gpudiag::ApiClass::kOther || api == gpudiag::ApiClass::kQuery) continue;
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) cuptiActivityEnableRuntimeApi(id, 1);
    else cuptiActivityEnableDriverApi(id, 1);
  }
}

void* flush_for_ever(void*) {
  for (;;) {
    usleep(kFlushEveryUs);
    cuptiActivityFlushAll(0);
  }
}

}  // namespace

/// Called by the driver as CUDA starts.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS) return 0;
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT,
        CUPTI_ACTIVITY_KIND_OVERHEAD})
    cuptiActivityEnable(kind);
  choose_functions(CUPTI_CB_DOMAIN_RUNTIME_API);
  choose_functions(CUPTI_CB_DOMAIN_DRIVER_API);
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, flush_for_ever, nullptr) == 0) pthread_detach(thread);
  return 1;
}
