// SPDX-License-Identifier: Apache-2.0
// What a device did, found a second way: a plain sweep over its operations that shares no code with
// the engine. Slow and simple on purpose.
#pragma once

#include <cstdint>
#include <vector>

#include "record/names.hpp"
#include "record/record.hpp"

namespace gpudiag::golden {

/// In nanoseconds, from the start of the first operation to the end of the last.
struct SweptTimes {
  std::int64_t wall = 0;
  std::int64_t compute = 0;
  std::int64_t communication = 0;  ///< while nothing computes
  std::int64_t copy = 0;           ///< while nothing computes or communicates
  std::int64_t idle = 0;
  std::int64_t communication_in_all = 0;
  std::int64_t copy_in_all = 0;
};

/// By whose terms. TraceLens counts memsets as computation, and knows as communication only NCCL's
/// kernels; by our contract a memset is a copy, and torch's all-reduce over symmetric memory is a
/// collective like any other.
enum class Reading { kContract, kTraceLens };

SweptTimes sweep(const std::vector<Record>& records, DeviceId device, const NameTable& names,
                 Reading reading = Reading::kContract);

}  // namespace gpudiag::golden
