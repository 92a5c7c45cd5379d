// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/selection.hpp"

#include <algorithm>
#include <array>

#include "fmt/format.h"
#include "sources/cupti/cupti_load.hpp"

namespace gpudiag {
namespace {

// CONCURRENT_KERNEL and not KERNEL, which would make kernels wait for each other. RUNTIME and DRIVER
// are switched on function by function.
constexpr std::array kKinds{
    std::pair{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL"},
    std::pair{CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY"},
    std::pair{CUPTI_ACTIVITY_KIND_MEMCPY2, "MEMCPY2"},
    std::pair{CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET"},
    std::pair{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "SYNCHRONIZATION"},
    std::pair{CUPTI_ACTIVITY_KIND_CUDA_EVENT, "CUDA_EVENT"},
    std::pair{CUPTI_ACTIVITY_KIND_OVERHEAD, "OVERHEAD"},
    std::pair{CUPTI_ACTIVITY_KIND_MARKER, "MARKER"},
};

// Ids are dense with few holes; this many unknown ones in a row are the end.
constexpr std::uint32_t kCallbackHole = 64;

bool is_needed(ApiClass api) { return api != ApiClass::kOther && api != ApiClass::kQuery; }

/// Slow by nature, so a callback around it costs nothing in proportion.
bool is_for_callbacks(ApiClass api) {
  switch (api) {
    case ApiClass::kStreamSync:
    case ApiClass::kDeviceSync:
    case ApiClass::kEventSync:
    case ApiClass::kMalloc:
    case ApiClass::kFree:
    case ApiClass::kHostMalloc:
    case ApiClass::kHostFree: return true;
    default: return false;
  }
}

}  // namespace

ActivitySelection::Refused ActivitySelection::enable_kinds(bool markers) {
  Refused refused;
  for (const auto& [kind, name] : kKinds) {
    if (kind == CUPTI_ACTIVITY_KIND_MARKER && !markers) continue;
    const CUptiResult result = cupti_.enable(kind);
    if (result == CUPTI_SUCCESS) {
      enabled_.push_back(kind);
      continue;
    }
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return {true, describe(cupti_, result)};
    refused.what += fmt::format("{}{}: {}", refused.what.empty() ? "" : ", ", name, describe(cupti_, result));
  }
  return refused;
}

void ActivitySelection::find_functions(ActivityDecoder& decoder) {
  functions_.clear();
  slow_.clear();
  if (cupti_.callback_name == nullptr) return;
  for (const CUpti_CallbackDomain domain : {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API}) {
    std::uint32_t hole = 0;
    for (std::uint32_t id = 1; hole < kCallbackHole; ++id) {
      const auto& function = decoder.function(domain, id);
      hole = function.name == kNoName ? hole + 1 : 0;
      if (!is_needed(function.traits.api)) continue;
      functions_.push_back({domain, id});
      // The driver call inside a runtime call would tell the same wait twice.
      if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && is_for_callbacks(function.traits.api)) slow_.push_back({domain, id});
    }
  }
}

bool ActivitySelection::selectable(CUpti_CallbackDomain domain) const {
  return domain == CUPTI_CB_DOMAIN_RUNTIME_API ? cupti_.enable_runtime_api != nullptr
                                               : cupti_.enable_driver_api != nullptr;
}

void ActivitySelection::record(const CallbackId& id, bool on) {
  if (!selectable(id.domain)) return;
  const std::uint8_t value = on ? 1 : 0;
  if (id.domain == CUPTI_CB_DOMAIN_RUNTIME_API) cupti_.enable_runtime_api(id.callback, value);
  else cupti_.enable_driver_api(id.callback, value);
}

bool ActivitySelection::enable_functions(CUpti_CallbackDomain domain, bool subscribed) {
  const bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  if (!selectable(domain) || functions_.empty()) {  // an older CUPTI: all calls or none
    const auto kind = runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
    if (cupti_.enable(kind) != CUPTI_SUCCESS) return false;
    enabled_.push_back(kind);
    return true;
  }
  for (const CallbackId& id : functions_)
    if (id.domain == domain) record(id, true);
  if (runtime && subscribed)
    for (const CallbackId& id : slow_) record(id, false);
  return true;
}

void ActivitySelection::without_subscriber() {
  for (const CallbackId& id : slow_) record(id, true);
}

void ActivitySelection::disable_driver_calls() {
  for (const CallbackId& id : functions_)
    if (id.domain == CUPTI_CB_DOMAIN_DRIVER_API) record(id, false);
}

void ActivitySelection::disable_markers() {
  if (std::erase(enabled_, CUPTI_ACTIVITY_KIND_MARKER) != 0) cupti_.disable(CUPTI_ACTIVITY_KIND_MARKER);
}

void ActivitySelection::disable_all() {
  for (const CallbackId& id : functions_) record(id, false);
  for (const CUpti_ActivityKind kind : enabled_) cupti_.disable(kind);
  enabled_.clear();
}

}  // namespace gpudiag
