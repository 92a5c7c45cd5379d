// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/borrowed_settings.hpp"

#include <utility>

namespace gpudiag {
namespace {

std::optional<std::uint8_t> per_thread(const CuptiTable& cupti) {
  std::uint8_t value = 0;
  std::size_t size = sizeof value;
  if (cupti.get_attribute == nullptr ||
      cupti.get_attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &value) != CUPTI_SUCCESS)
    return std::nullopt;
  return value;
}

void set_per_thread(const CuptiTable& cupti, std::uint8_t value) {
  std::size_t size = sizeof value;
  if (cupti.set_attribute != nullptr)
    cupti.set_attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &value);
}

}  // namespace

void BorrowedSettings::take(const CuptiTable& cupti) {
  if (cupti.set_thread_id_type != nullptr) {
    CUpti_ActivityThreadIdType found = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
    thread_ids_.reset();
    if (cupti.get_thread_id_type != nullptr && cupti.get_thread_id_type(&found) == CUPTI_SUCCESS) thread_ids_ = found;
    cupti.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  }
  found_per_thread_.reset();
  const auto now = per_thread(cupti);
  if (!ours_per_thread_) ours_per_thread_ = now;
  if (!now || now == ours_per_thread_) return;
  found_per_thread_ = now;
  set_per_thread(cupti, *ours_per_thread_);
}

void BorrowedSettings::give_back(const CuptiTable& cupti) {
  if (const auto ids = std::exchange(thread_ids_, std::nullopt)) cupti.set_thread_id_type(*ids);
  if (const auto found = std::exchange(found_per_thread_, std::nullopt)) set_per_thread(cupti, *found);
}

}  // namespace gpudiag
