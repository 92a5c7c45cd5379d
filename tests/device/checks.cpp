// SPDX-License-Identifier: Apache-2.0
#include "checks.hpp"

#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace gpudiag::device {
namespace {

// A buffer of its own each time: nothing here is fast, and a stale record must not look new.
void CUPTIAPI give(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  const std::lock_guard lock{client().mutex};
  client().requesters.push_back(std::this_thread::get_id());
  *size = client().buffer_bytes;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *records = 0;
}

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_MEMORY2: return sizeof(CUpti_ActivityMemory3);
    default: return sizeof(CUpti_ActivityAPI);
  }
}

void CUPTIAPI take(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Client& c = client();
  const std::lock_guard lock{c.mutex};
  c.completers.push_back(std::this_thread::get_id());
  ++c.completed_buffers;
  CUpti_Activity* next = nullptr;
  while (valid != 0 && cuptiActivityGetNextRecord(buffer, valid, &next) == CUPTI_SUCCESS) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(next);
    c.records.emplace_back(bytes, bytes + size_of(next->kind));
  }
  std::free(buffer);
}

}  // namespace

bool simulated() {
  const char* value = std::getenv("GPUDIAG_DEVICE_CHECKS");
  return value != nullptr && std::string{value} == "simulated";
}

std::string why_not() {
  if (simulated() || access("/dev/nvidiactl", F_OK) == 0) return {};
  return "no GPU here: there is no /dev/nvidiactl";
}

void Check::SetUp() {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
}

// Leaked: CUPTI may deliver until the process is gone.
Client& client() {
  static Client& one = *new Client;
  return one;
}

std::vector<CUpti_ActivityAPI> Client::calls(CUpti_CallbackDomain domain, const std::string& name) {
  const bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  auto found = of<CUpti_ActivityAPI>(runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER);
  std::erase_if(found, [&](const CUpti_ActivityAPI& call) {
    return !function_name(domain, call.cbid).starts_with(name);
  });
  return found;
}

void record(std::initializer_list<CUpti_ActivityKind> kinds, std::size_t buffer_bytes) {
  client().buffer_bytes = buffer_bytes;
  ASSERT_CUPTI(cuptiActivityRegisterCallbacks(give, take));
  for (const CUpti_ActivityKind kind : kinds) ASSERT_CUPTI(cuptiActivityEnable(kind));
}

void deliver() {
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_CUPTI(cuptiActivityFlushAll(0));
}

std::string function_name(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  const char* name = nullptr;
  if (cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS || name == nullptr) return {};
  const std::string whole{name};
  const std::size_t version = whole.rfind("_v");
  return version == std::string::npos ? whole : whole.substr(0, version);
}

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace gpudiag::device
