// SPDX-License-Identifier: Apache-2.0
// Another question in one of the worlds that are asked for (what_if.hpp): there, all that the replay
// keeps begins anew as it was observed.
#include "attribution/replay.hpp"

namespace gpudiag {
namespace {

void begin_anew(Lanes& lanes, std::size_t lane) { lanes[lane] = lanes[kNullWorld]; }

}  // namespace

void Replay::ask(std::size_t place, const Question& question) {
  const std::size_t lane = kFirstAsked + place;
  const auto keep = static_cast<WorldMask>(~world(lane));
  worlds_.ask(place, question);
  for (const auto& line : lines_) {
    if (!line) continue;
    begin_anew(line->shift, lane);
    begin_anew(line->before, lane);
  }
  for (StreamState& stream : streams_) {
    begin_anew(stream.tail.in, lane);
    begin_anew(stream.awaited.in, lane);
  }
  for (LaunchQueue& queue : queues_)
    queue.for_each([&](Arrival& left) { begin_anew(left.in, lane); });
  events_.for_each([&](Arrival& when) { begin_anew(when.in, lane); });
  for (OperationReplay& operation : operations_) {
    begin_anew(operation.start_in, lane);
    operation.no_length = static_cast<WorldMask>(operation.no_length & keep);
  }
}

}  // namespace gpudiag
