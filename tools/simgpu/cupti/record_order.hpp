// SPDX-License-Identifier: Apache-2.0
//
// Walking over the records of a buffer: what cuptiActivityGetNextRecord does, and the fault
// "record.out_of_order".
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace simgpu::cupti {

/// Steps `record` to the next one in buffer[0, valid), or to the first if it is null.
/// CUPTI_ERROR_MAX_LIMIT_REACHED at the end, and where what is left is too short for the record;
/// CUPTI_ERROR_INVALID_KIND where there is none; `record` then stays as it is.
CUptiResult next_record(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record);

/// Turns the order of the records round.
void reverse_records(std::uint8_t* buffer, std::size_t valid);

}  // namespace simgpu::cupti
