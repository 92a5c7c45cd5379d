// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// CUPTI's callback API, for what is rare and slow anyway: blocking syncs and allocations (seen while
// they last, and whoever has the activity buffers) and modules going away. Never launches.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "sources/cupti/cupti_abi.hpp"

namespace gpudiag {

/// A function of the driver or runtime API by CUPTI's number.
struct CallbackId {
  CUpti_CallbackDomain domain;
  std::uint32_t callback;
};

/// In HostMessage::callback one number holds both.
inline constexpr std::uint32_t kRuntimeCallbackBit = 1u << 31;

/// Lives for ever once taken; take() and release() are for one thread.
class CallbackSubscriber {
 public:
  /// The subscriber, with `functions` enabled; otherwise the reason, which names the holder where
  /// CUPTI tells.
  CUptiResult take(const CuptiTable& cupti, const std::vector<CallbackId>& functions, std::string& why_not);
  void release(const CuptiTable& cupti);
  bool taken() const { return taken_; }

  /// Grows with each module that is unloaded. [any thread]
  static std::uint64_t modules_unloaded();

 private:
  CUpti_SubscriberHandle handle_ = nullptr;
  bool taken_ = false;
};

/// What CUPTI calls. Exposed for tests and benchmarks. [hot] [any thread]
void CUPTIAPI on_callback(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId callback, const void* data);

}  // namespace gpudiag
