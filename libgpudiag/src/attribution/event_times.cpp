// SPDX-License-Identifier: Apache-2.0
#include "attribution/event_times.hpp"

namespace gpudiag {
namespace {

// Events are reused, or made anew for each iteration; then the oldest are forgotten.
constexpr std::size_t kEventsKept = 1u << 16;

}  // namespace

void EventTimes::record(std::uint64_t id, const Event& event) {
  if (events_.size() >= kEventsKept && events_.find(id) == events_.end()) {
    for (std::size_t i = 0; i < kEventsKept / 2; ++i) events_.erase(order_[i]);
    order_.erase(order_.begin(), order_.begin() + kEventsKept / 2);
  }
  const auto [entry, added] = events_.try_emplace(id);
  if (added) order_.push_back(id);
  else entry->second.previous = entry->second.latest;
  entry->second.latest = event;
}

const EventTimes::Event* EventTimes::find(std::uint64_t id, CorrelationId record) const {
  const auto found = events_.find(id);
  if (found == events_.end()) return nullptr;
  if (record != kNoCorrelation && found->second.latest.record != record &&
      found->second.previous.record == record)
    return &found->second.previous;
  return &found->second.latest;
}

}  // namespace gpudiag
