// SPDX-License-Identifier: Apache-2.0
#include "record_faults.hpp"

#include <cupti.h>
#include <x86intrin.h>

#include <string>

#include "kind_table.hpp"

namespace simgpu::cupti {
namespace {

std::string matched_name(int kind, const char* label) {
  std::string name = kind_name(kind);
  name += '/';
  if (label != nullptr) {
    name += label;
  }
  return name;
}

}  // namespace

RecordFaults::RecordFaults()
    : any_(any_faults()),
      wsl_(find_fault("wsl")),
      drop_(find_fault("record.drop")),
      zero_time_(find_fault("record.zero_time")),
      negative_(find_fault("record.negative")),
      foreign_clock_(find_fault("record.foreign_clock")),
      steal_(find_fault("buffer.steal")),
      reverse_(find_fault("record.out_of_order")),
      late_(find_fault("record.late")),
      after_stop_(find_fault("buffer.after_stop")) {}

RecordFaults::Drop RecordFaults::decide_drop(int kind, const char* label) {
  const bool kernel =
      kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || kind == CUPTI_ACTIVITY_KIND_KERNEL;
  if (wsl_ != nullptr && kernel) {
    return Drop::kSilent;
  }
  if (drop_ != nullptr && drop_->fires(matched_name(kind, label))) {
    return drop_->number("counted", 1) != 0 ? Drop::kCounted : Drop::kSilent;
  }
  return Drop::kKeep;
}

void RecordFaults::spoil(int kind, const char* label, std::uint64_t& start, std::uint64_t& end) {
  const auto strikes = [&](Fault* fault) {
    return fault != nullptr && fault->fires(matched_name(kind, label));
  };
  if (strikes(zero_time_)) {
    start = 0;
    end = 0;
  }
  if (strikes(negative_)) {
    end = start - static_cast<std::uint64_t>(negative_->number("by_ns", 1'000));
  }
  if (strikes(foreign_clock_)) {
    // As if read from the processor's cycle counter: its value now, spread over the duration.
    const std::uint64_t duration = end - start;
    end = __rdtsc();
    start = end - duration;
  }
}

RecordFaults::Delivery RecordFaults::on_delivery(bool after_stop) {
  if (!any_) {
    return Delivery::kNow;
  }
  if (steal_ != nullptr && steal_->fires()) {
    return Delivery::kStolen;
  }
  if (hold_ns(after_stop) > 0 && ((after_stop && after_stop_ != nullptr && after_stop_->fires()) ||
                                  (late_ != nullptr && late_->fires()))) {
    return Delivery::kHeld;
  }
  if (reverse_ != nullptr && reverse_->fires()) {
    return Delivery::kReversed;
  }
  return Delivery::kNow;
}

std::int64_t RecordFaults::hold_ns(bool after_stop) const {
  Fault* fault = after_stop && after_stop_ != nullptr ? after_stop_ : late_;
  return fault != nullptr ? fault->number("delay_ms", 200) * 1'000'000 : 0;
}

}  // namespace simgpu::cupti
