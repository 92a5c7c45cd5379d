// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// What stands in a trace beside its events.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sources/recorded/recorded_trace.hpp"

namespace gpudiag::kineto_file {

struct TraceMembers {
  RecordedInfo info;
  std::int64_t base_ns = 0;  ///< what time stamps are relative to, in ns since 1970
};

/// From keys and values as written. What cannot be read is as if absent.
TraceMembers read_members(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace gpudiag::kineto_file
