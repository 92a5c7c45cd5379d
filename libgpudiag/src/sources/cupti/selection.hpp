// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// Which activities CUPTI records for us: kinds, and single functions of the runtime and driver API.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sources/cupti/callbacks.hpp"
#include "sources/cupti/cupti_abi.hpp"
#include "sources/cupti/decode.hpp"

namespace gpudiag {

/// Drain thread. `cupti` must outlive it.
class ActivitySelection {
 public:
  explicit ActivitySelection(const CuptiTable& cupti) : cupti_{cupti} {}

  struct Refused {
    bool kernels = false;  ///< not even kernels: there can be no ledger
    std::string what;      ///< kinds and reasons, for people; empty: none
  };
  /// All kinds that the ledger needs; with `markers`, NVTX ranges as CUPTI records them too.
  Refused enable_kinds(bool markers);
  /// Looks up which functions matter, by the names that CUPTI gives them.
  void find_functions(ActivityDecoder& decoder);
  /// Records the functions of `domain`; all of its calls where CUPTI is too old to select. False where it
  /// records none. Those that `subscribed` says are seen by callbacks are left out.
  bool enable_functions(CUpti_CallbackDomain domain, bool subscribed);
  /// Blocking syncs and allocations: what a subscriber sees instead.
  const std::vector<CallbackId>& slow_functions() const { return slow_; }
  /// The slow functions are recorded again from now on.
  void without_subscriber();
  void disable_driver_calls();
  void disable_markers();
  void disable_all();

 private:
  bool selectable(CUpti_CallbackDomain domain) const;
  void record(const CallbackId& id, bool on);

  const CuptiTable& cupti_;
  std::vector<CUpti_ActivityKind> enabled_;
  std::vector<CallbackId> functions_;
  std::vector<CallbackId> slow_;
};

}  // namespace gpudiag
