// SPDX-License-Identifier: Apache-2.0
// What a call of the host waited for, and what that does to the line in every world.
#include <algorithm>

#include "attribution/replay.hpp"

namespace gpudiag {

// Ends at the later of its caller and what it waited for, and what it took after that. In the worlds
// without its cause it takes no time and waits for nothing.
void Replay::wait(HostLine& line, TimePoint start, TimePoint end, const Arrival& target,
                  WorldMask void_in) {
  const std::int64_t waited = std::min(target.at, end.ns);
  const std::int64_t moved = waited - target.at;
  const std::int64_t after = end.ns - std::max(start.ns, waited);
  for (std::size_t w = 0; w < kLaneCount; ++w) {
    const std::int64_t caller = start.ns - line.shift[w];
    const std::int64_t done =
        (void_in & world(w)) != 0 ? caller : std::max(caller, target.in[w] + moved) + after;
    line.shift[w] = end.ns - done;
  }
}

// Work of other chains (a copy in the background) is not moved together with this one. It holds the
// call up in other worlds only where it did so in the trace.
std::optional<Arrival> Replay::device_target(const Call& call, TimePoint start, Index device) {
  std::optional<Arrival> target;
  const auto add = [&](const Arrival& tail) {
    if (!target) target = tail;
    else join(*target, tail);
  };
  for (const bool of_chain : {true, false}) {
    const std::int64_t until = std::max(start.ns, target ? target->at : kNever);
    for (Index stream = 0; stream < streams_.size(); ++stream) {
      const StreamState& state = streams_[stream];
      const Index on = ties_.stream_device(stream);
      if (state.order == 0 || state.tail.at > call.end.ns) continue;
      if ((device != kNone && on != device) || ties_.in_chain(on, stream) != of_chain) continue;
      if (of_chain || state.tail.at > until) add(state.tail);
    }
  }
  return target;
}

std::optional<Arrival> Replay::stream_target(const Call& call, TimePoint start) {
  if (call.sync != kNone && store_.syncs[call.sync].stream != kNone) {
    const Index stream = store_.syncs[call.sync].stream;
    ties_.host_waits_for(call.thread, stream);
    const StreamState& state = stream_state(stream);
    if (state.order == 0) return std::nullopt;
    return state.tail;
  }
  // Which stream is not recorded: the one whose last operation ended nearest before the call did.
  const StreamState* nearest = nullptr;
  for (const StreamState& state : streams_)
    if (state.order != 0 && state.tail.at > start.ns && state.tail.at <= call.end.ns &&
        (nearest == nullptr || state.tail.at > nearest->tail.at))
      nearest = &state;
  if (nearest != nullptr) return nearest->tail;
  const Index last = threads_[call.thread].stream;
  if (last == kNone || stream_state(last).tail.at > call.end.ns) return std::nullopt;
  return stream_state(last).tail;
}

std::optional<Arrival> Replay::event_target(const Call& call, TimePoint start) {
  if (call.sync != kNone) {
    const SyncPoint& sync = store_.syncs[call.sync];
    if (const EventTimes::Event* event = events_.find(sync.event, sync.record_correlation)) {
      if (event->stream != kNone) ties_.host_waits_for(call.thread, event->stream);
      return event->when;
    }
  }
  // Not recorded: the operation that ended nearest before the call did, if it ended during it.
  constexpr int kSearched = 4096;
  const auto& order = store_.by_start;
  auto at = std::upper_bound(order.begin(), order.end(), call.end, [&](TimePoint t, Index index) {
    return t < store_.operations[index].start;
  });
  Index nearest = kNone;
  for (int i = 0; i < kSearched && at != order.begin(); ++i) {
    const Operation& operation = store_.operations[*--at];
    if (!operation.replayed || operation.end <= start || operation.end > call.end) continue;
    if (nearest == kNone || operation.end > store_.operations[nearest].end) nearest = *at;
  }
  if (nearest == kNone) return std::nullopt;
  return end_of(nearest);
}

std::optional<Arrival> Replay::target_of(const Call& call, TimePoint start) {
  if ((call.flags & record_flag::kFailed) != 0) return std::nullopt;
  const Index device = call.sync != kNone && store_.syncs[call.sync].device != kNone
                           ? store_.syncs[call.sync].device
                           : threads_[call.thread].device;
  switch (call.api) {
    case ApiClass::kStreamSync: return stream_target(call, start);
    case ApiClass::kEventSync: return event_target(call, start);
    case ApiClass::kDeviceSync: return device_target(call, start, device);
    case ApiClass::kMalloc:
    case ApiClass::kFree: {
      bool& waits = call.api == ApiClass::kMalloc ? malloc_waits_ : free_waits_;
      if (!waits || (call.flags & record_flag::kBlocksNever) != 0) return std::nullopt;
      for (Index stream = 0; stream < streams_.size(); ++stream)
        if (streams_[stream].order != 0 && ties_.stream_device(stream) == device &&
            streams_[stream].tail.at > call.end.ns)
          waits = false;
      return waits ? device_target(call, start, device) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

// The launch cannot return before the operation `depth` launches ago has left the queue.
TimePoint Replay::wait_for_queue(HostLine& line, const Call& call, TimePoint start, Index device) {
  if (device >= queues_.size()) queues_.resize(device + 1);
  const Arrival* left = queues_[device].awaited(options_.launch_queue_depth);
  if (left == nullptr) return start;
  if (left->at > call.end.ns) {
    queues_[device].disprove();
    return start;
  }
  const TimePoint until{std::max(start.ns, std::min(left->at, call.end.ns))};
  wait(line, start, until, *left, worlds_.without(Cause::kDependency, SubCause::kLaunchQueueFull));
  if (start < until)
    apply(line,
          {start, until,
           {Cause::kDependency, SubCause::kLaunchQueueFull, call.name, ties_.thread_id(call.thread)},
           false, false},
          false);
  return until;
}

void Replay::record_event(const SyncPoint& record) {
  if (record.stream == kNone || record.event == 0) return;
  const StreamState& state = stream_state(record.stream);
  Arrival when = state.tail;
  if (state.waits) join(when, state.awaited);
  events_.record(record.event, {record.correlation, record.stream, when});
}

void Replay::make_stream_wait(const SyncPoint& sync) {
  if (sync.stream == kNone) return;
  const EventTimes::Event* event = events_.find(sync.event, sync.record_correlation);
  if (event == nullptr) return;
  ties_.waits_for(sync.stream, event->stream);
  StreamState& state = stream_state(sync.stream);
  if (!state.waits) state.awaited = event->when;
  else join(state.awaited, event->when);
  state.waits = true;
}

void Replay::pass_events(const Call& call) {
  if (call.event_record != kNone) record_event(store_.event_records[call.event_record]);
  if (call.api == ApiClass::kStreamWait && call.sync != kNone)
    make_stream_wait(store_.syncs[call.sync]);
}

}  // namespace gpudiag
