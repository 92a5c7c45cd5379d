// SPDX-License-Identifier: Apache-2.0
//
// Operations of the device as CUPTI's records: kernels, copies, memsets, graphs, events.
#pragma once

#include <cstdint>

#include "../core/listener.hpp"

namespace simgpu::cupti {

/// Latches what is enabled and keeps the unfinished record. Returns the tag by which
/// finish_operation() finds it; 0 where no record is wanted.
std::uint64_t queue_operation(const OperationRecord& operation);

/// Fills in the times.
void finish_operation(const OperationRecord& operation);

}  // namespace simgpu::cupti
