// SPDX-License-Identifier: Apache-2.0
//
// The exported callback API (cupti_callbacks.h).
#include <algorithm>
#include <cstring>
#include <string>

#include "entry.hpp"

namespace simgpu::cupti {
namespace {

void write_name(CUpti_SubscriberParams* params, const std::string& holder) {
  if (params == nullptr || params->oldSubscriberName == nullptr || params->oldSubscriberSize == 0) {
    return;
  }
  const std::size_t length = std::min(holder.size(), params->oldSubscriberSize - 1);
  std::memcpy(params->oldSubscriberName, holder.data(), length);
  params->oldSubscriberName[length] = '\0';
}

CUptiResult subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc function, void* userdata,
                      CUpti_SubscriberParams* params) {
  if (handle == nullptr || (params != nullptr && params->structSize == 0)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  Fault* foreign = find_fault("cupti.foreign_subscriber");
  if (foreign != nullptr && foreign->fires()) {
    write_name(params, foreign->has("tool") ? std::string(foreign->text("tool"))
                                            : std::string("Nsight Systems"));
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  Library& lib = library();
  std::string own_name;
  if (params != nullptr && params->subscriberName != nullptr) {
    own_name = params->subscriberName;
    own_name.resize(std::min<std::size_t>(own_name.size(), CUPTI_SUBSCRIBER_NAME_MAX_LEN));
  }
  Subscription* made = lib.subscriber.subscribe(function, userdata, own_name.c_str());
  if (made == nullptr) {
    const std::string holder = lib.subscriber.current_name();
    write_name(params, "CUPTI for " + (holder.empty() ? std::string("<not provided>") : holder));
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(made);
  return CUPTI_SUCCESS;
}

// Changes what is enabled for the current subscriber by `change(Subscriber&)`, which is false
// where there is no such callback.
template <class Change>
CUptiResult change_enabled(CUpti_SubscriberHandle handle, Change&& change) {
  Library& lib = library();
  if (!lib.subscriber.is_current(handle) || !change(lib.subscriber)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  lib.update_wanted();
  return CUPTI_SUCCESS;
}

}  // namespace
}  // namespace simgpu::cupti

using namespace simgpu::cupti;

SIMGPU_EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber,
                                         CUpti_CallbackFunc callback, void* userdata) {
  return enter("cuptiSubscribe", [&] { return subscribe(subscriber, callback, userdata, nullptr); });
}

SIMGPU_EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber,
                                            CUpti_CallbackFunc callback, void* userdata,
                                            CUpti_SubscriberParams* params) {
  return enter("cuptiSubscribe_v2",
               [&] { return subscribe(subscriber, callback, userdata, params); });
}

SIMGPU_EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  return enter("cuptiUnsubscribe", [&] {
    Library& lib = library();
    if (!lib.subscriber.unsubscribe(reinterpret_cast<const Subscription*>(subscriber))) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    lib.update_wanted();
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                              CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  return enter("cuptiEnableCallback", [&] {
    return change_enabled(
        subscriber, [&](Subscriber& s) { return s.set_enabled(domain, cbid, enable != 0); });
  });
}

SIMGPU_EXPORT CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                            CUpti_CallbackDomain domain) {
  return enter("cuptiEnableDomain", [&] {
    return change_enabled(subscriber,
                          [&](Subscriber& s) { return s.set_domain(domain, enable != 0); });
  });
}

SIMGPU_EXPORT CUptiResult cuptiEnableAllDomains(uint32_t enable,
                                                CUpti_SubscriberHandle subscriber) {
  return enter("cuptiEnableAllDomains", [&] {
    return change_enabled(subscriber, [&](Subscriber& s) {
      s.set_all(enable != 0);
      return true;
    });
  });
}

SIMGPU_EXPORT CUptiResult cuptiGetCallbackState(uint32_t* enable,
                                                CUpti_SubscriberHandle subscriber,
                                                CUpti_CallbackDomain domain,
                                                CUpti_CallbackId cbid) {
  return enter("cuptiGetCallbackState", [&] {
    Library& lib = library();
    if (enable == nullptr || !lib.subscriber.is_current(subscriber) || !is_valid_domain(domain) ||
        cbid == 0 || cbid >= callback_count(domain)) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *enable = lib.subscriber.wants(domain, cbid) ? 1 : 0;
    return CUPTI_SUCCESS;
  });
}

SIMGPU_EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                               const char** name) {
  return enter("cuptiGetCallbackName", [&] {
    if (name == nullptr ||
        (domain != CUPTI_CB_DOMAIN_RUNTIME_API && domain != CUPTI_CB_DOMAIN_DRIVER_API)) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    *name = callback_name(domain, cbid);
    return *name != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
  });
}

SIMGPU_EXPORT CUptiResult cuptiSupportedDomains(size_t* count, CUpti_DomainTable* table) {
  return enter("cuptiSupportedDomains", [&] {
    if (count == nullptr || table == nullptr) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    static CUpti_CallbackDomain domains[] = {
        CUPTI_CB_DOMAIN_DRIVER_API,  CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_RESOURCE,
        CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CB_DOMAIN_NVTX,        CUPTI_CB_DOMAIN_STATE};
    *count = std::size(domains);
    *table = domains;
    return CUPTI_SUCCESS;
  });
}
