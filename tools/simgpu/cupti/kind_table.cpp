// SPDX-License-Identifier: Apache-2.0
#include "kind_table.hpp"

#include <algorithm>

namespace simgpu::cupti {
namespace {

template <class Switches>
void set_all(Switches& switches, bool on) {
  for (auto& each : switches) {
    each.store(on, std::memory_order_relaxed);
  }
}

template <class Switches>
bool any(const Switches& switches) {
  return std::any_of(switches.begin(), switches.end(),
                     [](const auto& each) { return each.load(std::memory_order_relaxed); });
}

// How a kind behaves here. `kAbsent` kinds may be enabled but what they report does not happen
// on the simulated machine (OpenACC, confidential computing, …).
enum class Support : std::uint8_t { kInvalid, kModelled, kAbsent, kIndirect, kLegacy, kUnmodelled };

struct KindInfo {
  const char* name;
  std::size_t size;
  Support support;
};

// Sizes and the kinds that have none agree with cuptiActivityGetNextRecord of CUDA 13.0.85, whose
// strides were measured kind by kind.
constexpr KindInfo kKinds[CUPTI_ACTIVITY_KIND_COUNT] = {
    {"INVALID", 0, Support::kInvalid},
    {"MEMCPY", sizeof(CUpti_ActivityMemcpy6), Support::kModelled},
    {"MEMSET", sizeof(CUpti_ActivityMemset4), Support::kModelled},
    {"KERNEL", sizeof(CUpti_ActivityKernel10), Support::kModelled},
    {"DRIVER", sizeof(CUpti_ActivityAPI), Support::kModelled},
    {"RUNTIME", sizeof(CUpti_ActivityAPI), Support::kModelled},
    {"EVENT", 0, Support::kIndirect},
    {"METRIC", 0, Support::kIndirect},
    {"DEVICE", sizeof(CUpti_ActivityDevice5), Support::kModelled},
    {"CONTEXT", sizeof(CUpti_ActivityContext3), Support::kModelled},
    {"CONCURRENT_KERNEL", sizeof(CUpti_ActivityKernel10), Support::kModelled},
    {"NAME", sizeof(CUpti_ActivityName), Support::kModelled},
    {"MARKER", sizeof(CUpti_ActivityMarker2), Support::kModelled},
    {"MARKER_DATA", sizeof(CUpti_ActivityMarkerData2), Support::kModelled},
    {"SOURCE_LOCATOR", 0, Support::kLegacy},
    {"GLOBAL_ACCESS", 0, Support::kLegacy},
    {"BRANCH", 0, Support::kLegacy},
    {"OVERHEAD", sizeof(CUpti_ActivityOverhead3), Support::kModelled},
    {"CDP_KERNEL", sizeof(CUpti_ActivityCdpKernel), Support::kIndirect},
    {"PREEMPTION", sizeof(CUpti_ActivityPreemption), Support::kAbsent},
    {"ENVIRONMENT", sizeof(CUpti_ActivityEnvironment), Support::kModelled},
    {"EVENT_INSTANCE", 0, Support::kIndirect},
    {"MEMCPY2", sizeof(CUpti_ActivityMemcpyPtoP4), Support::kModelled},
    {"METRIC_INSTANCE", 0, Support::kIndirect},
    {"INSTRUCTION_EXECUTION", 0, Support::kLegacy},
    {"UNIFIED_MEMORY_COUNTER", sizeof(CUpti_ActivityUnifiedMemoryCounter3), Support::kUnmodelled},
    {"FUNCTION", sizeof(CUpti_ActivityFunction), Support::kUnmodelled},
    {"MODULE", sizeof(CUpti_ActivityModule), Support::kIndirect},
    {"DEVICE_ATTRIBUTE", sizeof(CUpti_ActivityDeviceAttribute), Support::kIndirect},
    {"SHARED_ACCESS", 0, Support::kLegacy},
    {"PC_SAMPLING", 0, Support::kLegacy},
    {"PC_SAMPLING_RECORD_INFO", 0, Support::kLegacy},
    {"INSTRUCTION_CORRELATION", 0, Support::kLegacy},
    {"OPENACC_DATA", sizeof(CUpti_ActivityOpenAccData), Support::kAbsent},
    {"OPENACC_LAUNCH", sizeof(CUpti_ActivityOpenAccLaunch), Support::kAbsent},
    {"OPENACC_OTHER", sizeof(CUpti_ActivityOpenAccOther), Support::kAbsent},
    {"CUDA_EVENT", sizeof(CUpti_ActivityCudaEvent2), Support::kModelled},
    {"STREAM", sizeof(CUpti_ActivityStream), Support::kModelled},
    {"SYNCHRONIZATION", sizeof(CUpti_ActivitySynchronization2), Support::kModelled},
    {"EXTERNAL_CORRELATION", sizeof(CUpti_ActivityExternalCorrelation), Support::kModelled},
    {"NVLINK", sizeof(CUpti_ActivityNvLink4), Support::kUnmodelled},
    {"INSTANTANEOUS_EVENT", 0, Support::kIndirect},
    {"INSTANTANEOUS_EVENT_INSTANCE", 0, Support::kIndirect},
    {"INSTANTANEOUS_METRIC", 0, Support::kIndirect},
    {"INSTANTANEOUS_METRIC_INSTANCE", 0, Support::kIndirect},
    {"MEMORY", sizeof(CUpti_ActivityMemory), Support::kModelled},
    {"PCIE", sizeof(CUpti_ActivityPcie), Support::kUnmodelled},
    {"OPENMP", sizeof(CUpti_ActivityOpenMp), Support::kAbsent},
    {"INTERNAL_LAUNCH_API", sizeof(CUpti_ActivityAPI), Support::kAbsent},
    {"MEMORY2", sizeof(CUpti_ActivityMemory4), Support::kModelled},
    {"MEMORY_POOL", sizeof(CUpti_ActivityMemoryPool3), Support::kUnmodelled},
    {"GRAPH_TRACE", sizeof(CUpti_ActivityGraphTrace2), Support::kModelled},
    {"JIT", sizeof(CUpti_ActivityJit2), Support::kAbsent},
    {"DEVICE_GRAPH_TRACE", sizeof(CUpti_ActivityDeviceGraphTrace), Support::kIndirect},
    {"MEM_DECOMPRESS", sizeof(CUpti_ActivityMemDecompress), Support::kAbsent},
    {"CONFIDENTIAL_COMPUTE_ROTATION", sizeof(CUpti_ActivityConfidentialComputeRotation),
     Support::kAbsent},
};

const KindInfo& info(int kind) noexcept {
  return kKinds[kind > 0 && kind < CUPTI_ACTIVITY_KIND_COUNT ? kind : 0];
}

}  // namespace

void KindTable::set(CUpti_ActivityKind kind, bool on) {
  global_[kind].store(on, std::memory_order_relaxed);
  if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
    set_all(runtime_, on);
  } else if (kind == CUPTI_ACTIVITY_KIND_DRIVER) {
    set_all(driver_, on);
  }
}

void KindTable::set_for_context(CUpti_ActivityKind kind, std::uint32_t context_uid, bool on) {
  const std::lock_guard lock(mutex_);
  context_settings_[{context_uid, kind}] = on;
  has_context_settings_.store(true, std::memory_order_relaxed);
}

bool KindTable::set_api(ApiDomain domain, std::uint32_t cbid, bool on) {
  if (cbid == 0 || cbid >= (domain == ApiDomain::runtime ? runtime_.size() : driver_.size())) {
    return false;
  }
  (domain == ApiDomain::runtime ? runtime_[cbid] : driver_[cbid])
      .store(on, std::memory_order_relaxed);
  return true;
}

void KindTable::clear() {
  set_all(global_, false);
  set_all(runtime_, false);
  set_all(driver_, false);
  const std::lock_guard lock(mutex_);
  context_settings_.clear();
  has_context_settings_.store(false, std::memory_order_relaxed);
}

bool KindTable::enabled_with_context(CUpti_ActivityKind kind, std::uint32_t context_uid) const {
  const std::lock_guard lock(mutex_);
  const auto found = context_settings_.find({context_uid, kind});
  return found != context_settings_.end() ? found->second
                                          : global_[kind].load(std::memory_order_relaxed);
}

bool KindTable::enabled_anywhere(CUpti_ActivityKind kind) const {
  if (global_[kind].load(std::memory_order_relaxed)) {
    return true;
  }
  const std::lock_guard lock(mutex_);
  return std::any_of(context_settings_.begin(), context_settings_.end(), [&](const auto& setting) {
    return setting.first.second == kind && setting.second;
  });
}

bool KindTable::nothing_enabled() const {
  for (int kind = 1; kind < CUPTI_ACTIVITY_KIND_COUNT; ++kind) {
    if (enabled_anywhere(static_cast<CUpti_ActivityKind>(kind))) {
      return false;
    }
  }
  return !any(runtime_) && !any(driver_);
}

CUptiResult check_kind(int kind) noexcept {
  switch (info(kind).support) {
    case Support::kModelled:
    case Support::kAbsent:
      return CUPTI_SUCCESS;
    case Support::kIndirect:
      return CUPTI_ERROR_NOT_COMPATIBLE;
    case Support::kLegacy:
      return CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED;
    case Support::kUnmodelled:
      return CUPTI_ERROR_NOT_SUPPORTED;
    case Support::kInvalid:
      break;
  }
  return CUPTI_ERROR_INVALID_KIND;
}

const char* kind_name(int kind) noexcept {
  return kind > 0 && kind < CUPTI_ACTIVITY_KIND_COUNT ? kKinds[kind].name : "?";
}

std::size_t record_size(int kind) noexcept { return info(kind).size; }

}  // namespace simgpu::cupti
