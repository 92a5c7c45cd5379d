// SPDX-License-Identifier: Apache-2.0
//
// What SIMGPU_FAULTS does to records and buffers: the defects seen in the field, on demand.
//
//   a record is made → drops() → a buffer; its times pass distort(); a flush → on_delivery()
//
// Rules match `name=` against "KIND/label", where the label is the kernel's or the function's
// name: "name=CONCURRENT_KERNEL/.*gemm" or "name=RUNTIME". README.md lists the targets.
#pragma once

#include <cstdint>

#include "../core/faults.hpp"

namespace simgpu::cupti {

/// The rules of the record path, looked up once. Without SIMGPU_FAULTS each question is one
/// test of a bool.
class RecordFaults {
 public:
  RecordFaults();

  enum class Drop : std::uint8_t { kKeep, kCounted, kSilent };
  /// [hot] Whether this record is lost, and whether the drop count says so.
  Drop drops(int kind, const char* label) {
    return any_ ? decide_drop(kind, label) : Drop::kKeep;
  }

  /// [hot] Spoils the times of a record.
  void distort(int kind, const char* label, std::uint64_t& start, std::uint64_t& end) {
    if (any_) {
      spoil(kind, label, start, end);
    }
  }

  /// What happens to a buffer that is about to be handed to the client.
  enum class Delivery : std::uint8_t { kNow, kStolen, kReversed, kHeld };
  Delivery on_delivery(bool after_stop);
  /// How long a kHeld buffer waits, ns.
  std::int64_t hold_ns(bool after_stop) const;

 private:
  Drop decide_drop(int kind, const char* label);
  void spoil(int kind, const char* label, std::uint64_t& start, std::uint64_t& end);

  bool any_;
  Fault* wsl_;
  Fault* drop_;
  Fault* zero_time_;
  Fault* negative_;
  Fault* foreign_clock_;
  Fault* steal_;
  Fault* reverse_;
  Fault* late_;
  Fault* after_stop_;
};

}  // namespace simgpu::cupti
