// SPDX-License-Identifier: Apache-2.0
#include "subscriber.hpp"

#include <algorithm>
#include <iterator>

namespace simgpu::cupti {
namespace {

#include "callback_names.inc"

// A client's own calls from within a callback must not call it again.
thread_local bool t_in_callback = false;

}  // namespace

std::size_t callback_count(CUpti_CallbackDomain domain) noexcept {
  switch (domain) {
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      return std::size(kRuntimeNames);
    case CUPTI_CB_DOMAIN_DRIVER_API:
      return std::size(kDriverNames);
    case CUPTI_CB_DOMAIN_RESOURCE:
      return CUPTI_CBID_RESOURCE_SIZE;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE:
      return CUPTI_CBID_SYNCHRONIZE_SIZE;
    case CUPTI_CB_DOMAIN_NVTX:
      return std::size(kNvtxNames);
    case CUPTI_CB_DOMAIN_STATE:
      return CUPTI_CBID_STATE_SIZE;
    default:
      return 0;
  }
}

const char* callback_name(CUpti_CallbackDomain domain, std::uint32_t cbid) noexcept {
  if (cbid >= callback_count(domain)) {
    return nullptr;
  }
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    return kRuntimeNames[cbid];
  }
  return domain == CUPTI_CB_DOMAIN_DRIVER_API ? kDriverNames[cbid] : nullptr;
}

const char* nvtx_function_name(std::uint32_t cbid) noexcept {
  return cbid < std::size(kNvtxNames) ? kNvtxNames[cbid] : nullptr;
}

bool is_valid_domain(int domain) noexcept {
  return domain > CUPTI_CB_DOMAIN_INVALID && domain < CUPTI_CB_DOMAIN_SIZE;
}

Subscription* Subscriber::subscribe(CUpti_CallbackFunc function, void* userdata,
                                    const char* name) {
  auto* fresh = new Subscription{function, userdata, name != nullptr ? name : ""};
  Subscription* none = nullptr;
  if (current_.compare_exchange_strong(none, fresh, std::memory_order_acq_rel)) {
    return fresh;
  }
  delete fresh;
  return nullptr;
}

bool Subscriber::unsubscribe(const Subscription* subscription) {
  Subscription* expected = current_.load(std::memory_order_acquire);
  if (subscription == nullptr || expected != subscription) {
    return false;
  }
  set_all(false);
  return current_.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
}

void Subscriber::reset() {
  set_all(false);
  current_.store(nullptr, std::memory_order_release);
}

bool Subscriber::is_current(const void* handle) const {
  return handle != nullptr && current_.load(std::memory_order_acquire) == handle;
}

std::string Subscriber::current_name() const {
  const Subscription* current = current_.load(std::memory_order_acquire);
  return current != nullptr ? current->name : std::string();
}

bool Subscriber::wants_any(CUpti_CallbackDomain domain) const {
  const auto& points = enabled_[domain];
  return std::any_of(points.begin(), points.end(),
                     [](const auto& on) { return on.load(std::memory_order_relaxed); });
}

void Subscriber::notify(CUpti_CallbackDomain domain, std::uint32_t cbid, const void* data) {
  const Subscription* current = current_.load(std::memory_order_acquire);
  if (current == nullptr || t_in_callback) {
    return;
  }
  t_in_callback = true;
  current->function(current->userdata, domain, cbid, data);
  t_in_callback = false;
}

bool Subscriber::set_enabled(CUpti_CallbackDomain domain, std::uint32_t cbid, bool on) {
  if (!is_valid_domain(domain) || cbid == 0 || cbid >= callback_count(domain)) {
    return false;
  }
  enabled_[domain][cbid].store(on, std::memory_order_relaxed);
  return true;
}

bool Subscriber::set_domain(CUpti_CallbackDomain domain, bool on) {
  if (!is_valid_domain(domain)) {
    return false;
  }
  for (std::size_t cbid = 1; cbid < callback_count(domain); ++cbid) {
    enabled_[domain][cbid].store(on, std::memory_order_relaxed);
  }
  return true;
}

void Subscriber::set_all(bool on) {
  for (int domain = 1; domain < CUPTI_CB_DOMAIN_SIZE; ++domain) {
    set_domain(static_cast<CUpti_CallbackDomain>(domain), on);
  }
}

}  // namespace simgpu::cupti
