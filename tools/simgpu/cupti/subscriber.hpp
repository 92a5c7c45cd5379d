// SPDX-License-Identifier: Apache-2.0
//
// The callback API: one subscriber, and which callback points it wants.
//
//   listener, NVTX → Subscriber::wants() → notify() → the client's function
#pragma once

#include <cupti.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace simgpu::cupti {

/// Names and numbers of callback points, from the installed headers.
std::size_t callback_count(CUpti_CallbackDomain domain) noexcept;
/// Null where there is no such callback, or the domain's have no names.
const char* callback_name(CUpti_CallbackDomain domain, std::uint32_t cbid) noexcept;
/// Name of an NVTX function by its callback id; null where there is none.
const char* nvtx_function_name(std::uint32_t cbid) noexcept;

/// One client of the callback API. It outlives its unsubscription, because a callback may be on
/// its way.
struct Subscription {
  CUpti_CallbackFunc function;
  void* userdata;
  std::string name;
};

/// [any thread], but changes of what is enabled are serialised by the client, as CUPTI asks.
class Subscriber {
 public:
  /// Null when the place is taken.
  Subscription* subscribe(CUpti_CallbackFunc function, void* userdata, const char* name);
  /// False when this is not the current subscription.
  bool unsubscribe(const Subscription* subscription);
  /// Whoever subscribed no longer is.
  void reset();
  bool is_current(const void* handle) const;
  /// Name of whoever subscribed, "" when nobody has.
  std::string current_name() const;

  /// [hot] Whether anybody wants this callback point.
  bool wants(CUpti_CallbackDomain domain, std::uint32_t cbid) const {
    return cbid < kMaxCallbacks && enabled_[domain][cbid].load(std::memory_order_relaxed);
  }
  bool wants_any(CUpti_CallbackDomain domain) const;

  /// [hot] Calls the client. Nothing happens within a callback: what a client does there is not
  /// reported back to it.
  void notify(CUpti_CallbackDomain domain, std::uint32_t cbid, const void* data);

  /// cbid 0 stands for the whole domain. False where there is no such callback.
  bool set_enabled(CUpti_CallbackDomain domain, std::uint32_t cbid, bool on);
  bool set_domain(CUpti_CallbackDomain domain, bool on);
  void set_all(bool on);

 private:
  static constexpr std::size_t kMaxCallbacks = CUPTI_DRIVER_TRACE_CBID_SIZE;
  static_assert(kMaxCallbacks >= CUPTI_RUNTIME_TRACE_CBID_SIZE);

  // acquire/release: the subscription's fields are whole before anybody calls it.
  std::atomic<Subscription*> current_{nullptr};
  std::array<std::array<std::atomic<bool>, kMaxCallbacks>, CUPTI_CB_DOMAIN_SIZE> enabled_{};
};

/// The same for the activity side: valid domains are 1 … CUPTI_CB_DOMAIN_SIZE - 1.
bool is_valid_domain(int domain) noexcept;

}  // namespace simgpu::cupti
