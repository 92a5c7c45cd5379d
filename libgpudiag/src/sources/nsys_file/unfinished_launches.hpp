// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// A recording that is stopped while the job runs ends with launches whose operations had not run yet.
#pragma once

#include <cstdint>

#include "sources/recorded/record_store.hpp"

namespace gpudiag::nsys_file {

/// Makes plain calls (ApiClass::kOther) of the launches that come after the last one of their thread
/// with an operation, for no operation of theirs was lost: it came too late. Returns how many.
std::uint64_t settle_unfinished_launches(recorded::RecordStore& records);

}  // namespace gpudiag::nsys_file
