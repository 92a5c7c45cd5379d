// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// When an operation starts: after its stream's predecessor, its launch and the events that its stream
// was told to wait for, in every world.
#pragma once

#include <cstdint>
#include <limits>

#include "attribution/worlds.hpp"
#include "record/time.hpp"

namespace gpudiag {

/// A stream's last operation, and what it has been told to wait for since.
struct StreamState {
  Arrival tail;
  Arrival awaited;
  bool waits = false;
  std::int64_t spacing = 0;   ///< between operations back to back, as last seen
  bool spacing_seen = false;
  std::uint64_t order = 0;    ///< launch order of the last operation; 0: none yet
  TimePoint first_launched = kTimeMax;  ///< start of the first operation whose launch was seen
};

/// When each of what an operation waits for would let it start.
struct Pulls {
  std::int64_t tail = 0;
  std::int64_t launch = 0;
  std::int64_t awaited = 0;
  std::int64_t queued_more = 0;  ///< later than `tail` where launches take no time
  bool any = false;              ///< there is something that it waits for
};

/// For an operation that was seen to start at `start`. `latency` is what lay between a launch's return
/// and its operation's start, as last seen; it is learnt where `returned` says that the operation waited
/// for the launch's return. `launch` is null where none was seen. [hot]
Pulls pulls_on(std::int64_t start, StreamState& stream, const Arrival* launch,
               std::int64_t* latency, bool returned, DurationNs launch_latency);

/// When the operation starts in each world; `free_launches`: those in which launches take no time. [hot]
void start_in_worlds(Lanes& in, const Pulls& pulls, const StreamState& stream,
                     const Arrival* launch, WorldMask free_launches);

}  // namespace gpudiag
