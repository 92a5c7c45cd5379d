// SPDX-License-Identifier: Apache-2.0
//
// Which activity kinds and which API functions are recorded. Asked when an operation is queued or
// a call is entered: what stands here then is latched into the record, so that disabling a kind
// before the last flush loses nothing.
#pragma once

#include <cupti.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "../core/listener.hpp"

namespace simgpu::cupti {

/// [any thread]; reads are relaxed loads: enabling orders nothing but itself.
class KindTable {
 public:
  /// [hot] Whether records of the kind are wanted; a setting of the context, where there is one,
  /// supersedes the global one.
  bool enabled(CUpti_ActivityKind kind, std::uint32_t context_uid) const {
    if (has_context_settings_.load(std::memory_order_relaxed)) {
      return enabled_with_context(kind, context_uid);
    }
    return global_[kind].load(std::memory_order_relaxed);
  }

  /// [hot] Whether calls of this function are recorded.
  bool api_enabled(ApiDomain domain, std::uint32_t cbid) const {
    return domain == ApiDomain::runtime
               ? cbid < runtime_.size() && runtime_[cbid].load(std::memory_order_relaxed)
               : cbid < driver_.size() && driver_[cbid].load(std::memory_order_relaxed);
  }

  /// The kinds RUNTIME and DRIVER set every function of their API.
  void set(CUpti_ActivityKind kind, bool on);
  void set_for_context(CUpti_ActivityKind kind, std::uint32_t context_uid, bool on);
  /// Returns false where there is no such function.
  bool set_api(ApiDomain domain, std::uint32_t cbid, bool on);
  void clear();

  /// True when the kind is on globally or for any context.
  bool enabled_anywhere(CUpti_ActivityKind kind) const;
  /// True when nothing at all is recorded.
  bool nothing_enabled() const;

 private:
  bool enabled_with_context(CUpti_ActivityKind kind, std::uint32_t context_uid) const;

  template <std::size_t N>
  using Switches = std::array<std::atomic<bool>, N>;
  Switches<CUPTI_ACTIVITY_KIND_COUNT> global_{};
  Switches<CUPTI_RUNTIME_TRACE_CBID_SIZE> runtime_{};
  Switches<CUPTI_DRIVER_TRACE_CBID_SIZE> driver_{};
  std::atomic<bool> has_context_settings_{false};
  mutable std::mutex mutex_;
  std::map<std::pair<std::uint32_t, int>, bool> context_settings_;  // guarded by mutex_
};

/// What enabling a kind answers: CUPTI_SUCCESS for those that are modelled or cannot occur here.
CUptiResult check_kind(int kind) noexcept;

/// "CONCURRENT_KERNEL" for CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL; "?" for none of them. What
/// `name=` in fault rules is matched against.
const char* kind_name(int kind) noexcept;

/// Size of a kind's record in a buffer; 0 for kinds that have no record in CUPTI 13.
std::size_t record_size(int kind) noexcept;

}  // namespace simgpu::cupti
