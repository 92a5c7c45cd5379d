// SPDX-License-Identifier: Apache-2.0
// The records of a training job that never ends, made as they are needed: what the benchmarks of the
// engine and of memory feed it. Nothing in here is random, so that two runs do the same work.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "record/names.hpp"
#include "record/record.hpp"

namespace gpudiag::bench {

/// An iteration is `launches` kernels in a forward, a backward and an optimizer range, a loss that is
/// read back and waited for, and the mark of the step.
struct JobShape {
  std::uint32_t launches = 300;
  DurationNs call = microseconds(3);       ///< of a launch call
  DurationNs dispatch = microseconds(5);   ///< between two calls
  DurationNs kernel = microseconds(14);    ///< mean; single ones take from a half to one and a half
  bool events = false;                     ///< a second stream that is waited for every 16 launches
};

/// One that the GPU limits, and one whose every kernel waits for its launch.
JobShape gpu_bound();
JobShape host_bound();

class TrainingStream {
 public:
  TrainingStream(const JobShape& shape, NameTable& names);

  /// What a live session's next flush, 200 ms later, would deliver: the calls and ranges that ended
  /// until then, then the operations, then a tick. Valid until the next call.
  const std::vector<Record>& next_round();

 private:
  void add_iteration();
  void add_launch(std::uint32_t number);
  void add_events();
  void add_loss();
  void add_operation(Record operation, DurationNs length);
  Record call(ApiClass api, DurationNs length, NameId name);
  void add_range(TimePoint start, NameId name);

  JobShape shape_;
  std::vector<NameId> kernels_;
  NameId launch_, copy_, sync_, record_, wait_;
  NameId forward_, backward_, optimizer_;
  TimePoint host_{};
  TimePoint device_[2]{};
  TimePoint round_end_{};
  std::uint32_t correlation_ = 0;
  std::uint32_t noise_ = 1;
  std::uint64_t iteration_ = 0;
  std::deque<Record> host_records_;
  std::deque<Record> operations_;
  std::vector<Record> round_;
};

}  // namespace gpudiag::bench
