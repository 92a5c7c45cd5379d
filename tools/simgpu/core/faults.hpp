// SPDX-License-Identifier: Apache-2.0
//
// Faults on demand: what SIMGPU_FAULTS asks for, parsed once, asked by every simulated library.
//
//   SIMGPU_FAULTS = rule { ";" rule }
//   rule          = target [ ":" setting { "," setting } ]
//   setting       = key [ "=" value ]
//
// A target is the name of an API function ("cudaMalloc", "cuptiSubscribe", "nvmlDeviceGetName")
// or a fault of its own ("kernel", "clock", "record.drop", …; the README lists them). Settings
// that say *when* a rule fires, all counted from 1 over the matching calls of the process:
//   nth=N      the N-th only                every=N    each N-th
//   after=N    all from the (N+1)-th on     p=0.01     with this probability (SIMGPU_SEED)
//   times=N    at most N times              name=RE    only where the name matches this ECMAScript
//                                                      regular expression (kernels, records)
// Without any the rule fires always. Other settings are the target's own ("error=2",
// "delay_ns=500000").
#pragma once

#include <atomic>
#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simgpu {

class Fault {
 public:
  // Counts one matching occasion and says whether the fault strikes it. `name` is what `name=`
  // is matched against. Thread safe; deterministic for a given order of calls.
  bool fires(std::string_view name = {});

  // The settings of the rule; `fallback` where it is not given or no number.
  std::int64_t number(std::string_view key, std::int64_t fallback) const;
  double real(std::string_view key, double fallback) const;
  // Empty where it is not given.
  std::string_view text(std::string_view key) const;
  bool has(std::string_view key) const;

  const std::string& target() const { return target_; }
  // Unparsed rule, for messages and the truth file.
  const std::string& rule() const { return rule_; }
  // How often it has fired.
  std::int64_t fired() const { return fired_.load(std::memory_order_relaxed); }

 private:
  friend class FaultTable;
  std::string target_;
  std::string rule_;
  std::vector<std::pair<std::string, std::string>> settings_;
  std::int64_t nth_ = 0;
  std::int64_t every_ = 0;
  std::int64_t after_ = 0;
  std::int64_t times_ = 0;
  double probability_ = -1.0;
  bool has_name_ = false;
  std::regex name_;
  std::uint64_t seed_ = 0;
  std::atomic<std::int64_t> seen_{0};   // relaxed: a counter, orders nothing
  std::atomic<std::int64_t> fired_{0};  // likewise
};

// True when SIMGPU_FAULTS holds any rule: the only thing an unfaulted run pays for.
bool any_faults() noexcept;

// The first rule for `target`, or null. The pointer stays valid for ever: look it up once.
Fault* find_fault(std::string_view target);

// All rules for `target`, in the order given.
std::vector<Fault*> find_faults(std::string_view target);

}  // namespace simgpu
