// SPDX-License-Identifier: Apache-2.0
#include "attributes.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

#include "activity_store.hpp"

namespace simgpu::cupti {
namespace {

struct Attribute {
  std::size_t size;  // 0: given up in CUDA 12.3
  std::atomic<std::uint64_t> value;
};

// Index: CUpti_ActivityAttribute. Sizes of device buffers are kept and change nothing here.
Attribute g_attributes[] = {
    {sizeof(std::size_t), 3'200'000}, {sizeof(std::size_t), 8'388'608}, {sizeof(std::size_t), 250},
    {0, 0},                           {0, 0},                           {sizeof(std::uint8_t), 0},
    {sizeof(std::size_t), 3},         {0, 0},                           {sizeof(std::uint8_t), 0},
    {sizeof(std::uint8_t), 1},        {sizeof(std::size_t), 16'777'216}};

CUptiResult check(CUpti_ActivityAttribute attribute, const std::size_t* size, const void* value) {
  if (size == nullptr || value == nullptr || attribute < 0 ||
      static_cast<std::size_t>(attribute) >= std::size(g_attributes)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (g_attributes[attribute].size == 0) {
    return CUPTI_ERROR_NOT_SUPPORTED;
  }
  return *size < g_attributes[attribute].size ? CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT
                                              : CUPTI_SUCCESS;
}

}  // namespace

CUptiResult get_attribute(const ActivityStore& store, CUpti_ActivityAttribute attribute,
                          std::size_t* size, void* value) {
  if (const CUptiResult checked = check(attribute, size, value); checked != CUPTI_SUCCESS) {
    return checked;
  }
  std::uint64_t current = g_attributes[attribute].value.load();
  if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) {
    current = store.per_thread() ? 1 : 0;
  }
  *size = g_attributes[attribute].size;
  std::memcpy(value, &current, *size);  // little endian: the low bytes come first
  return CUPTI_SUCCESS;
}

CUptiResult set_attribute(ActivityStore& store, CUpti_ActivityAttribute attribute,
                          std::size_t* size, const void* value) {
  if (const CUptiResult checked = check(attribute, size, value); checked != CUPTI_SUCCESS) {
    return checked;
  }
  std::uint64_t wanted = 0;
  std::memcpy(&wanted, value, g_attributes[attribute].size);
  g_attributes[attribute].value.store(wanted);
  if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER) {
    store.set_per_thread(wanted != 0);
  } else if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER) {
    store.set_zeroed_by_client(wanted != 0);
  }
  return CUPTI_SUCCESS;
}

}  // namespace simgpu::cupti
