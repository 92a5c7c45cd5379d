// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// Finds the calls behind some of the records, by correlation id. Only those that are asked for are
// kept: a trace has millions.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "sources/recorded/record_store.hpp"

namespace gpudiag::nsys_file {

class CallIndex {
 public:
  struct Call {
    TimePoint start;
    TimePoint end;
    ThreadId thread{};
    bool known = false;
    bool driver = false;
  };

  void want(ProcessId process, CorrelationId correlation);
  /// Of a runtime call and a driver call with one id, the runtime call is the caller's.
  void find_in(const recorded::RecordStore& records);
  /// Null where the trace has no such call.
  const Call* find(ProcessId process, CorrelationId correlation) const;

 private:
  static std::uint64_t key(ProcessId process, CorrelationId correlation) {
    return std::uint64_t{raw(process)} << 32 | raw(correlation);
  }
  std::unordered_map<std::uint64_t, Call> calls_;
};

}  // namespace gpudiag::nsys_file
