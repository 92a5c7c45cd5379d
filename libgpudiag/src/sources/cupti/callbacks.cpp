// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/callbacks.hpp"

#include "fmt/format.h"
#include "sources/cupti/cupti_load.hpp"
#include "sources/host/now.hpp"
#include "sources/host/thread_log.hpp"

namespace gpudiag {
namespace {

constexpr std::uint32_t kNotReady = 600;
std::atomic<std::uint64_t> g_modules_unloaded{0};  // relaxed: only its change matters

void on_api(bool runtime, CUpti_CallbackId callback, const CUpti_CallbackData& data) noexcept {
  if (data.correlationData == nullptr) return;
  if (data.callbackSite == CUPTI_API_ENTER) {
    *data.correlationData = static_cast<std::uint64_t>(now().ns);
    return;
  }
  // An exit without an enter: we were enabled in between.
  const std::uint64_t entered = *data.correlationData;
  if (entered == 0 || !host_log_on()) return;
  ThreadLog* log = ThreadLogs::mine();
  if (log == nullptr) return;
  HostMessage message;
  message.kind = RecordKind::kApiCall;
  message.start = {static_cast<std::int64_t>(entered)};
  message.end = now();
  message.correlation = data.correlationId;
  message.callback = callback | (runtime ? kRuntimeCallbackBit : 0);
  // cudaError_t and CUresult alike are ints; symbolName and the rest are not touched: garbage here.
  const auto* result = static_cast<const std::uint32_t*>(data.functionReturnValue);
  if (result != nullptr && *result != 0 && *result != kNotReady) message.flags = record_flag::kFailed;
  log->write(message, {});
}

CUptiResult subscribe(const CuptiTable& cupti, CUpti_SubscriberHandle* handle, std::string& holder) {
  if (cupti.subscribe_v2 == nullptr) return cupti.subscribe(handle, on_callback, nullptr);
  char old_name[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN * 2] = {};
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "gpudiag";
  params.oldSubscriberName = old_name;
  params.oldSubscriberSize = sizeof old_name;
  const CUptiResult result = cupti.subscribe_v2(handle, on_callback, nullptr, &params);
  old_name[sizeof old_name - 1] = '\0';
  holder = old_name;
  return result;
}

}  // namespace

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId callback, const void* data) {
  if (data == nullptr) return;
  switch (domain) {
    case CUPTI_CB_DOMAIN_RUNTIME_API:
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return on_api(domain == CUPTI_CB_DOMAIN_RUNTIME_API, callback, *static_cast<const CUpti_CallbackData*>(data));
    case CUPTI_CB_DOMAIN_RESOURCE:
      if (callback == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
        g_modules_unloaded.fetch_add(1, std::memory_order_relaxed);
      return;
    default: return;
  }
}

CUptiResult CallbackSubscriber::take(const CuptiTable& cupti, const std::vector<CallbackId>& functions,
                                     std::string& why_not) {
  if ((cupti.subscribe == nullptr && cupti.subscribe_v2 == nullptr) || cupti.enable_callback == nullptr ||
      cupti.unsubscribe == nullptr) {
    why_not = "this CUPTI has no callback API";
    return CUPTI_ERROR_NOT_SUPPORTED;
  }
  std::string holder;
  const CUptiResult result = subscribe(cupti, &handle_, holder);
  if (result != CUPTI_SUCCESS) {
    why_not = describe(cupti, result);
    if (means_taken(result))
      why_not += holder.empty() ? ", another profiler holds CUPTI's only subscriber"
                                : fmt::format(", {} holds CUPTI's only subscriber", holder);
    return result;
  }
  taken_ = true;
  for (const CallbackId& id : functions) cupti.enable_callback(1, handle_, id.domain, id.callback);
  cupti.enable_callback(1, handle_, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
  return CUPTI_SUCCESS;
}

void CallbackSubscriber::release(const CuptiTable& cupti) {
  if (!taken_) return;
  taken_ = false;
  cupti.unsubscribe(handle_);
}

std::uint64_t CallbackSubscriber::modules_unloaded() { return g_modules_unloaded.load(std::memory_order_relaxed); }

}  // namespace gpudiag
