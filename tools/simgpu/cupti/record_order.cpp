// SPDX-License-Identifier: Apache-2.0
#include "record_order.hpp"

#include <cstring>
#include <vector>

#include "kind_table.hpp"

namespace simgpu::cupti {

CUptiResult next_record(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    next = reinterpret_cast<std::uint8_t*>(*record);
    next += record_size((*record)->kind);
  }
  const auto offset = static_cast<std::size_t>(next - buffer);
  if (offset + sizeof(CUpti_Activity) > valid) {
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  }
  auto* candidate = reinterpret_cast<CUpti_Activity*>(next);
  const std::size_t size = record_size(candidate->kind);
  if (size == 0) {
    return CUPTI_ERROR_INVALID_KIND;
  }
  if (offset + size > valid) {
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  }
  *record = candidate;
  return CUPTI_SUCCESS;
}

void reverse_records(std::uint8_t* buffer, std::size_t valid) {
  std::vector<std::uint8_t> source(buffer, buffer + valid);
  std::uint8_t* target = buffer + valid;
  CUpti_Activity* record = nullptr;
  while (next_record(source.data(), valid, &record) == CUPTI_SUCCESS) {
    const std::size_t size = record_size(record->kind);
    target -= size;
    std::memcpy(target, record, size);
  }
}

}  // namespace simgpu::cupti
