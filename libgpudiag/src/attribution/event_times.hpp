// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// When events were recorded last, in every world: what streams and the host wait for.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "attribution/worlds.hpp"
#include "record/ids.hpp"
#include "timeline/store.hpp"

namespace gpudiag {

class EventTimes {
 public:
  struct Event {
    CorrelationId record{};  ///< of the call that recorded it
    Index stream = kNone;
    Arrival when;            ///< all that its stream had been given by then is done
  };

  void record(std::uint64_t id, const Event& event);
  /// As recorded by the call `record`, or last where that is kNoCorrelation or long gone. Null: never.
  const Event* find(std::uint64_t id, CorrelationId record) const;

  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& [id, history] : events_) {
      visit(history.latest.when);
      visit(history.previous.when);
    }
  }

 private:
  struct History {
    Event latest;
    Event previous;
  };
  std::unordered_map<std::uint64_t, History> events_;
  std::vector<std::uint64_t> order_;
};

}  // namespace gpudiag
