// SPDX-License-Identifier: Apache-2.0
// Operations, started by launches of the host or found without one.
#include <algorithm>

#include "attribution/replay.hpp"

namespace gpudiag {

Arrival Replay::end_of(Index index) const {
  const OperationReplay& replay = operations_[index];
  const Operation& operation = store_.operations[index];
  const std::int64_t length = (operation.end - operation.start).ns;
  Arrival end;
  end.at = operation.end.ns;
  for (std::size_t w = 0; w < kLaneCount; ++w) end.in[w] = replay.start_in[w] + length;
  add_to(end.in, replay.no_length, -length);
  return end;
}

Arrival Replay::launch_of(const Call& call, const Operation& operation, TimePoint start,
                          const Lanes& before, const HostLine& line, WorldMask without,
                          bool blocking) const {
  if (operation.start >= call.end && !blocking) return host_arrival(call.end, line.shift);
  if (blocking || operation.start <= start) return host_arrival(std::min(start, operation.start), before);
  // Submitted somewhere inside the call: no later than it starts.
  Arrival arrival = host_arrival(operation.start, before);
  add_to(arrival.in, without, start.ns - operation.start.ns);
  return arrival;
}

void Replay::replay_operation(Index index, const Arrival* launch, HostLine* line, bool returned) {
  Operation& operation = store_.operations[index];
  OperationReplay& replay = operations_[index];
  StreamState& stream = stream_state(operation.stream);
  const std::int64_t start = operation.start.ns;
  const Pulls pulls = pulls_on(start, stream, launch, line != nullptr ? &line->latency : nullptr,
                               returned, options_.launch_latency);
  if (pulls.any) start_in_worlds(replay.start_in, pulls, stream, launch,
                                 worlds_.without(Cause::kLaunchOverhead, SubCause::kNone));
  else fill(replay.start_in, start);
  if (replay.start_in[kNullWorld] != start) ++mismatches_;

  operation.replayed = true;
  replay.order = order_;
  if (operation.type == OperationClass::kCommunication) {
    replay.no_length = static_cast<WorldMask>(replay.no_length | worlds_.without_communication());
    communication_ += operation.end - operation.start;
  }
  if (operation.type == OperationClass::kCopy) {
    replay.no_length = static_cast<WorldMask>(replay.no_length | worlds_.without_copies());
    copies_ += operation.end - operation.start;
  }
  // Nodes of a graph may run side by side on what is recorded as one stream.
  const Arrival end = end_of(index);
  if (stream.tail.at > start) join(stream.tail, end);
  else stream.tail = end;
  stream.waits = false;
  stream.order = order_;
  if (launch != nullptr) stream.first_launched = std::min(stream.first_launched, operation.start);
}

// A copy that blocks on an idle stream waits for nothing until it starts: its call is busy with itself
// (memory is staged, a profiler attaches), and where the call goes the copy starts that much earlier.
TimePoint Replay::begin_copy(HostLine& line, const Call& call, TimePoint start, CallLabel label) {
  const Operation& copy = store_.operations[call.first_operation];
  const StreamState& stream = stream_state(copy.stream);
  const bool idle = stream.tail.at <= start.ns && (!stream.waits || stream.awaited.at <= start.ns);
  if (!idle || copy.start - start <= options_.launch_latency) return start;
  pieces_.clear();
  cut_call(start, copy.start, call.name, label, witness(call.thread), pieces_);
  for (const Piece& piece : pieces_) apply(line, piece, true);
  return line.at;
}

void Replay::launch_operations(Index call_index, const Launch& from) {
  const Call& call = store_.calls[call_index];
  HostLine& line = this->line(from.line);
  const ThreadId thread = ties_.thread_id(call.thread);
  const bool blocks = from.copy == CopyWait::kUntilDone;
  ++order_;
  for (Index i = call.first_operation; i != kNone; i = store_.operations[i].next) {
    const Operation& operation = store_.operations[i];
    OperationReplay& replay = operations_[i];
    replay.launched_by(call, from.line, thread);
    if (operation.kind == RecordKind::kMemcpy)
      replay.no_length = worlds_without_copy(call_index, operation, blocks);
    const bool returned = operation.start >= call.end;
    const Arrival launch =
        from.beside && returned
            ? host_arrival(call.end, from.before)
            : launch_of(call, operation, std::min(from.start, call.end), from.before, line,
                        worlds_.without(from.label.cause, from.label.sub_cause), from.copy != CopyWait::kNoWait);
    replay_operation(i, &launch, &line, returned);
  }
}

void Replay::enter_queue(Index first) {
  const Operation& operation = store_.operations[first];
  if (operation.device >= queues_.size() || options_.launch_queue_depth == 0) return;
  queues_[operation.device].enter(options_.launch_queue_depth, operation.start.ns,
                                  operations_[first].start_in);
}

void Replay::replay_orphan(Index index) {
  const Operation& operation = store_.operations[index];
  OperationReplay& replay = operations_[index];
  replay = OperationReplay{};
  replay.launch_start = operation.start;
  replay.line = ties_.leader_of(operation.device);
  ++order_;
  replay_operation(index, nullptr, nullptr, false);
}

}  // namespace gpudiag
