// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> [report].
// At most one line a second: gathers the iterations of fast loops into ranges.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "report/text_line.hpp"

namespace gpudiag {

/// One for a rank; its devices share the second, so a rank with two devices prints two lines then.
/// Sees no clock: the caller says what time it is, and calls poll() at least every half second so
/// that a line stands in the log within two seconds of its iteration. Not thread-safe.
class LinePacer {
 public:
  using Print = std::function<void(const std::string& line)>;

  /// `every`: each iteration gets its own line at once.
  LinePacer(std::uint32_t rank, bool every, Print print);

  void add(const IterationLedger& ledger, TimePoint now);
  /// Prints what is due.
  void poll(TimePoint now);
  /// Prints all that waits, for the end of the job.
  void flush();
  /// Before the iterations of a device arrive it may be known already that there are several.
  void expect_devices(std::size_t count) { expected_devices_ = count; }

 private:
  void print(DeviceId device, const IterationRange& range);

  std::uint32_t rank_;
  bool every_;
  Print print_;
  std::size_t expected_devices_ = 0;
  std::map<DeviceId, IterationRange> waiting_;  // a device once seen stays, with count 0
  std::map<DeviceId, IterationRange> evaluations_;  // have a line of their own
  std::map<DeviceId, IterationRange> windows_;      // and so has what is no iteration
  TimePoint last_print_ = kTimeMin;
};

}  // namespace gpudiag
