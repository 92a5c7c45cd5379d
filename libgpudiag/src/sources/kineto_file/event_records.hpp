// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// Events that were recorded, of which a trace tells only where they are waited for.
#pragma once

#include <cstdint>
#include <map>

#include "sources/kineto_file/event_decoder.hpp"
#include "sources/recorded/record_store.hpp"

namespace gpudiag::kineto_file {

/// Adds the record of each event that some cuda_sync waited for: the call is in the trace, its
/// stream only in the args of the wait.
void add_event_records(recorded::RecordStore& records,
                       const std::map<std::uint32_t, RecordedEvent>& events);

}  // namespace gpudiag::kineto_file
