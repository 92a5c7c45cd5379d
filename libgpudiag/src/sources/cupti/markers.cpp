// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/markers.hpp"

#include <cstring>
#include <iterator>
#include <utility>

namespace gpudiag {
namespace {

std::string_view text_of(const CUpti_ActivityMarker2& marker) {
  return marker.name == nullptr ? std::string_view{} : std::string_view{marker.name, strnlen(marker.name, kRangeTextKept)};
}

}  // namespace

void MarkerPairs::add(const CUpti_ActivityMarker2& marker, const ClockMap& clock, const Take& take) {
  const auto has = [&](CUpti_ActivityFlag flag) { return (marker.flags & flag) != 0; };
  const ClockMap::Converted at = clock.to_session(static_cast<std::int64_t>(marker.timestamp));
  if (has(CUPTI_ACTIVITY_FLAG_MARKER_END)) {
    const auto found = open_.find(marker.id);
    if (found == open_.end()) {
      if (ended_.size() < kOpenKept) ended_.insert_or_assign(marker.id, Ended{at});
      return;
    }
    found->second.message.end = at.time;
    if (at.certain) take(found->second.message, found->second.text);
    open_.erase(found);
    return;
  }
  if (!at.certain) return;
  HostMessage message;
  message.kind = RecordKind::kRange;
  message.range = RangeSource::kNvtx;
  message.start = message.end = at.time;
  if (marker.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD) message.thread = marker.objectId.pt.threadId;
  if (has(CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS)) return take(message, text_of(marker));
  if (!has(CUPTI_ACTIVITY_FLAG_MARKER_START)) return;  // a synchronisation object's
  if (const auto ended = ended_.find(marker.id); ended != ended_.end()) {
    message.end = ended->second.at.time;
    if (ended->second.at.certain) take(message, text_of(marker));
    ended_.erase(ended);
    return;
  }
  if (open_.size() < kOpenKept) open_.insert_or_assign(marker.id, Open{message, std::string{text_of(marker)}});
}

void MarkerPairs::finish_round() {
  for (auto ended = ended_.begin(); ended != ended_.end();)
    ended = std::exchange(ended->second.waited, true) ? ended_.erase(ended) : std::next(ended);
}

void MarkerPairs::clear() {
  open_.clear();
  ended_.clear();
}

}  // namespace gpudiag
