// SPDX-License-Identifier: Apache-2.0
#include "attribution/replay.hpp"

#include <algorithm>
#include <utility>

namespace gpudiag {
namespace {

// Events are reused, or made anew for each iteration; then the oldest are forgotten.
constexpr std::size_t kEventsKept = 1u << 16;

// Between operations back to back where none were seen: the median between kernels that were queued
// is 1.0 to 1.2 us on three real traces (2080 Ti, V100, A100), 1.7 and 2 on two more.
constexpr std::int64_t kUsualSpacing = 1'000;

// What is read back with less is a value that somebody looks at.
constexpr std::uint64_t kItemBytes = 1024;

Arrival never() {
  Arrival arrival;
  arrival.at = kNever;
  fill(arrival.in, kNever);
  return arrival;
}

Arrival host_arrival(TimePoint at, const Lanes& shift) {
  Arrival arrival;
  arrival.at = at.ns;
  for (std::size_t w = 0; w < kLaneCount; ++w) arrival.in[w] = at.ns - shift[w];
  return arrival;
}

/// A few bytes to the host: a value to look at.
bool is_read_back(const Operation& operation) {
  return operation.kind == RecordKind::kMemcpy && operation.copy == CopyKind::kDeviceToHost &&
         operation.bytes <= kItemBytes;
}

}  // namespace

void Replay::prepare() {
  resize();
  threads_.resize(ties_.threads());
  lines_.resize(ties_.threads());
  others_line_ = kNone;
  if (merges_ != ties_.merges()) {
    merges_ = ties_.merges();
    for (Index thread = 0; thread < lines_.size(); ++thread) {
      const Index root = ties_.line_of(thread);
      if (root == thread || !lines_[thread]) continue;
      if (!lines_[root] || lines_[root]->calls < lines_[thread]->calls)
        lines_[root] = std::move(lines_[thread]);
      lines_[thread].reset();
    }
  }
  drives_.assign(ties_.threads(), false);
  for (Index line = 0; line < ties_.threads(); ++line) drives_[line] = ties_.has_compute(line);
  for (Index device = 0; device < ties_.devices(); ++device)
    if (const Index leader = ties_.leader_of(device); leader != kNone) drives_[leader] = true;
}

HostLine& Replay::line(Index line) {
  if (line >= lines_.size()) lines_.resize(line + 1);
  if (!lines_[line]) lines_[line] = std::make_unique<HostLine>();
  return *lines_[line];
}

StreamState& Replay::stream_state(Index stream) {
  while (stream >= streams_.size()) {
    streams_.emplace_back();
    streams_.back().tail = never();
    streams_.back().awaited = never();
  }
  return streams_[stream];
}

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

Witness Replay::witness(Index thread) const { return {ties_.thread_id(thread), &labels_[thread]}; }

void Replay::gather_others(Index line, Index thread) {
  if (others_line_ == line && others_thread_ == thread) return;
  others_line_ = line;
  others_thread_ = thread;
  others_.clear();
  for (Index other = 0; other < ties_.threads(); ++other)
    if (other != thread && ties_.line_of(other) == line && !labels_[other].empty())
      others_.push_back(witness(other));
}

void Replay::apply(HostLine& line, const Piece& piece, bool add_time) {
  const std::int64_t length = (piece.end - piece.start).ns;
  // Pieces tile the host's time: a hole or an overlap would break the replay of nothing removed.
  if (line.at != piece.start) ++mismatches_;
  if (add_time) add_to(line.shift, worlds_without(piece.key.cause), length);
  if (piece.late_batch) {
    constexpr WorldMask kGone = worlds_without(Cause::kDataLoading);
    for (std::size_t w = 0; w < kLaneCount; ++w)
      if ((kGone & world(w)) == 0) line.shift[w] = std::min<std::int64_t>(0, line.shift[w] + length);
  }
  line.at = piece.end;
  line.last[static_cast<std::size_t>(piece.key.cause)].see(piece, options_.dispatch_limit);
  if (piece.key.name == kOwnCode) line.own += piece.end - piece.start;
  line.log.add(piece);
  line.evidence.add_host(piece.key, piece.start, piece.end - piece.start, piece.goes_on ? 0 : 1);
}

void Replay::advance_to(HostLine& line, const Call& call, Index line_index) {
  if (line.at == kTimeMin) line.at = call.start;
  ++line.calls;
  if (call.start <= line.at) return;
  gather_others(line_index, call.thread);
  pieces_.clear();
  cut_silence(line.at, call.start, witness(call.thread), others_, options_, pieces_);
  for (const Piece& piece : pieces_) apply(line, piece, true);
}

// Ends at the later of its caller and what it waited for, and what it took after that. In the worlds
// without its cause it takes no time and waits for nothing.
void Replay::wait(HostLine& line, TimePoint start, TimePoint end, const Arrival& target,
                  Cause cause) {
  const std::int64_t waited = std::min(target.at, end.ns);
  const std::int64_t moved = waited - target.at;
  const std::int64_t after = end.ns - std::max(start.ns, waited);
  const WorldMask void_in = worlds_without(cause);
  for (std::size_t w = 0; w < kLaneCount; ++w) {
    const std::int64_t caller = start.ns - line.shift[w];
    const std::int64_t done =
        (void_in & world(w)) != 0 ? caller : std::max(caller, target.in[w] + moved) + after;
    line.shift[w] = end.ns - done;
  }
}

void Replay::body(HostLine& line, const Call& call, TimePoint start, CallLabel label,
                  const std::optional<Arrival>& target) {
  if (call.end <= start) return;
  if (target) {
    line.before_at = start;
    line.before = line.shift;
    line.blocked_thread = call.thread;
    wait(line, start, call.end, *target, label.cause);
  }
  pieces_.clear();
  cut_call(start, call.end, call.name, label, witness(call.thread), pieces_);
  for (const Piece& piece : pieces_) apply(line, piece, !target);
  if (label.copy.bytes != 0 && !pieces_.empty()) line.evidence.add_bytes(pieces_.back().key, label.copy.bytes);
}

// The copy a call asked for, if it can hold up who waits for it: a few bytes that are read back are a
// value that is looked at, whatever the memory they come into.
HoldingCopy Replay::copy_of(const Call& call) const {
  if (call.first_operation == kNone) return {};
  const Operation& copy = store_.operations[call.first_operation];
  if (copy.kind != RecordKind::kMemcpy || is_read_back(copy)) return {};
  return {copy.copy, (copy.flags & record_flag::kPageable) != 0, call.name, copy.bytes, false};
}

// A framework that copies pageable memory waits for the copy at once: it is the copy that holds it up,
// not the call it waits in. Such a copy follows nothing but look-ups since its own call.
HoldingCopy Replay::copy_behind(const Call& wait) {
  HoldingCopy& copied = threads_[wait.thread].copied;
  if (wait.api == ApiClass::kOther || wait.api == ApiClass::kQuery) return {};
  return std::exchange(copied, HoldingCopy{});
}

// A few bytes read back and waited for at once are a value that the host looks at: `.item()` and its
// like, where no operator range says so.
bool Replay::value_behind(const Call& wait) {
  if (wait.api == ApiClass::kOther || wait.api == ApiClass::kQuery) return false;
  return std::exchange(threads_[wait.thread].read_back, false);
}

CallLabel Replay::label_of(const Call& call, CopyWait copy) {
  const ThreadLabels& labels = labels_[call.thread];
  CallLabel own = label_of_call(call.api, call.end - call.start, copy != CopyWait::kNoWait, options_);
  const HoldingCopy before = copy_behind(call);
  if (value_behind(call) && own.sub_cause == SubCause::kStreamSync) own.sub_cause = SubCause::kItem;
  if (own.sub_cause == SubCause::kBlockingCopy) own.copy = copy_of(call);
  if (own.sub_cause == SubCause::kStreamSync && before.kind != CopyKind::kUnknown)
    own = {own.cause, SubCause::kBlockingCopy, before};
  // A caching allocator answers a failure by freeing its caches and trying again.
  if (own.sub_cause == SubCause::kDeviceMalloc && (call.flags & record_flag::kFailed) != 0)
    own.sub_cause = SubCause::kAllocatorRetry;
  if (labels.empty()) return own;
  if (const auto* owner = ThreadLabels::at(labels.owners(), call.start))
    return {owner->label.cause, owner->label.sub_cause};
  const auto* weak = ThreadLabels::at(labels.weak(), call.start);
  if (weak != nullptr && (own.cause == Cause::kLaunchOverhead || own.cause == weak->label.cause))
    return {weak->label.cause, weak->label.sub_cause};
  return own;
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

const Replay::Event* Replay::find_event(std::uint64_t id, CorrelationId record) const {
  const auto found = events_.find(id);
  if (found == events_.end()) return nullptr;
  if (record != kNoCorrelation && found->second.latest.record != record &&
      found->second.previous.record == record)
    return &found->second.previous;
  return &found->second.latest;
}

std::optional<Arrival> Replay::event_target(const Call& call, TimePoint start) {
  if (call.sync != kNone) {
    const SyncPoint& sync = store_.syncs[call.sync];
    if (const Event* event = find_event(sync.event, sync.record_correlation)) {
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

// A copy of pageable memory, or a synchronous one, that was under way while its call ran held the
// call up, if only by staging; where it was done by then the call waited for it.
Replay::CopyWait Replay::copy_wait(const Call& call) const {
  if (call.first_operation == kNone) return CopyWait::kNoWait;
  const Operation& operation = store_.operations[call.first_operation];
  const bool may_block =
      call.api == ApiClass::kMemcpy ||
      (call.api == ApiClass::kMemcpyAsync && (operation.flags & record_flag::kPageable) != 0);
  if (operation.kind != RecordKind::kMemcpy || !may_block) return CopyWait::kNoWait;
  if (operation.end <= call.end) return CopyWait::kUntilDone;
  return operation.start < call.end ? CopyWait::kWhileStaged : CopyWait::kNoWait;
}

// A few bytes read back and waited for at once: `.item()` where no operator range says so.
bool Replay::is_item_copy(Index call_index) const {
  constexpr Index kLookedAhead = 8;
  const Call& copy = store_.calls[call_index];
  const auto end = std::min<std::size_t>(store_.calls.size(), call_index + std::size_t{1} + kLookedAhead);
  for (std::size_t next = call_index + std::size_t{1}; next < end; ++next) {
    const Call& call = store_.calls[next];
    if (call.thread == copy.thread && !call.nested) return call.api == ApiClass::kStreamSync;
  }
  return false;
}

WorldMask Replay::worlds_without_copy(Index call_index, const Operation& copy, bool blocked) const {
  if (copy.copy != CopyKind::kDeviceToHost) return 0;
  const Call& call = store_.calls[call_index];
  const ThreadLabels& labels = labels_[call.thread];
  if (const auto* owner = ThreadLabels::at(labels.owners(), call.start))
    return worlds_without(owner->label.cause);
  const auto* weak = ThreadLabels::at(labels.weak(), call.start);
  const bool item = weak != nullptr && weak->label.cause == Cause::kSync;
  if (blocked || item || (copy.bytes <= kItemBytes && is_item_copy(call_index)))
    return worlds_without(Cause::kSync);
  return 0;
}

// The launch cannot return before the operation `depth` launches ago has left the queue.
TimePoint Replay::wait_for_queue(HostLine& line, const Call& call, TimePoint start, Index device) {
  if (device >= queues_.size()) queues_.resize(device + 1);
  Queue& queue = queues_[device];
  if (options_.launch_queue_depth == 0 || queue.disproved ||
      queue.launches < options_.launch_queue_depth)
    return start;
  const Arrival& left = queue.left[queue.next];
  if (left.at > call.end.ns) {
    queue.disproved = true;
    return start;
  }
  const TimePoint until{std::max(start.ns, std::min(left.at, call.end.ns))};
  wait(line, start, until, left, Cause::kDependency);
  if (start < until)
    apply(line,
          {start, until,
           {Cause::kDependency, SubCause::kLaunchQueueFull, call.name, ties_.thread_id(call.thread)},
           false, false},
          false);
  return until;
}

Arrival Replay::launch_of(const Call& call, const Operation& operation, TimePoint start,
                          const Lanes& before, const HostLine& line, Cause cause,
                          bool blocking) const {
  if (operation.start >= call.end && !blocking) return host_arrival(call.end, line.shift);
  if (blocking || operation.start <= start) return host_arrival(std::min(start, operation.start), before);
  // Submitted somewhere inside the call: no later than it starts.
  Arrival arrival = host_arrival(operation.start, before);
  add_to(arrival.in, worlds_without(cause), start.ns - operation.start.ns);
  return arrival;
}

// When the operation's predecessor, its launch and the events would let it start, as observed. What was
// left between the last of them and the start belongs to that one; the others are given what they were
// last seen to need. A rest too long for that is a wait nobody recorded: it stays whoever comes last.
Replay::Pulls Replay::pulls_on(std::int64_t start, StreamState& stream, const Arrival* launch,
                               HostLine* line, bool returned) {
  const auto clipped = [&](std::int64_t at) { return std::min(at, start); };
  const std::int64_t tail = clipped(stream.tail.at);
  const std::int64_t launched = launch != nullptr ? clipped(launch->at) : kNever;
  const std::int64_t awaited = stream.waits ? clipped(stream.awaited.at) : kNever;
  const std::int64_t latest = std::max({tail, launched, awaited});
  const std::int64_t rest = latest <= kNever ? 0 : start - latest;
  Pulls pulls{tail + rest, launched + rest, awaited + rest, 0, latest > kNever};
  if (rest > options_.launch_latency.ns) return pulls;
  const std::int64_t latency = line != nullptr ? line->latency : 0;
  if (launched > tail && launched > awaited) {
    if (line != nullptr && returned) line->latency = rest;
    pulls.launch = start;
    pulls.tail = clipped(tail + std::min(stream.spacing, start - tail));
    pulls.awaited = clipped(awaited + std::min(stream.spacing, start - awaited));
    if (!stream.spacing_seen) pulls.queued_more = std::min(kUsualSpacing, start - tail);
    return pulls;
  }
  if (launched + latency <= tail && tail >= awaited) {
    stream.spacing = rest;
    stream.spacing_seen = true;
  }
  pulls.launch = clipped(launched + latency);
  return pulls;
}

void Replay::start_in_worlds(Lanes& in, const Pulls& pulls, const StreamState& stream,
                             const Arrival* launch) {
  const std::int64_t tail_moved = pulls.tail - stream.tail.at;
  for (std::size_t w = 0; w < kLaneCount; ++w) in[w] = stream.tail.in[w] + tail_moved;
  // Without launches to wait for, a stream of which nothing was ever queued has a queue.
  add_to(in, worlds_without(Cause::kLaunchOverhead), pulls.queued_more);
  if (launch != nullptr) {
    const std::int64_t launch_moved = pulls.launch - launch->at;
    for (std::size_t w = 0; w < kLaneCount; ++w)
      in[w] = std::max(in[w], launch->in[w] + launch_moved);
  }
  if (stream.waits) {
    const std::int64_t awaited_moved = pulls.awaited - stream.awaited.at;
    for (std::size_t w = 0; w < kLaneCount; ++w)
      in[w] = std::max(in[w], stream.awaited.in[w] + awaited_moved);
  }
}

void Replay::replay_operation(Index index, const Arrival* launch, HostLine* line, bool returned) {
  Operation& operation = store_.operations[index];
  OperationReplay& replay = operations_[index];
  StreamState& stream = stream_state(operation.stream);
  const std::int64_t start = operation.start.ns;
  const Pulls pulls = pulls_on(start, stream, launch, line, returned);
  if (pulls.any) start_in_worlds(replay.start_in, pulls, stream, launch);
  else fill(replay.start_in, start);
  if (replay.start_in[kNullWorld] != start) ++mismatches_;

  operation.replayed = true;
  replay.order = order_;
  if (operation.type == OperationClass::kCommunication)
    replay.no_length = static_cast<WorldMask>(replay.no_length | world(kCommunicationWorld));
  if (operation.type == OperationClass::kCopy)
    replay.no_length = static_cast<WorldMask>(replay.no_length | world(kCopyWorld));
  // Nodes of a graph may run side by side on what is recorded as one stream.
  const Arrival end = end_of(index);
  if (stream.tail.at > start) join(stream.tail, end);
  else stream.tail = end;
  stream.waits = false;
  stream.order = order_;
  if (launch != nullptr) stream.first_launched = std::min(stream.first_launched, operation.start);
}

void Replay::record_event(const SyncPoint& record) {
  if (record.stream == kNone || record.event == 0) return;
  const StreamState& state = stream_state(record.stream);
  Arrival when = state.tail;
  if (state.waits) join(when, state.awaited);
  if (events_.size() >= kEventsKept && events_.find(record.event) == events_.end()) {
    for (std::size_t i = 0; i < kEventsKept / 2; ++i) events_.erase(event_order_[i]);
    event_order_.erase(event_order_.begin(), event_order_.begin() + kEventsKept / 2);
  }
  const auto [entry, added] = events_.try_emplace(record.event);
  if (added) event_order_.push_back(record.event);
  else entry->second.previous = entry->second.latest;
  entry->second.latest = {record.correlation, record.stream, when};
}

void Replay::make_stream_wait(const SyncPoint& sync) {
  if (sync.stream == kNone) return;
  const Event* event = find_event(sync.event, sync.record_correlation);
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
                        from.label.cause, from.copy != CopyWait::kNoWait);
    replay_operation(i, &launch, &line, returned);
  }
}

// The launch holds its place in the device's queue until its first operation starts.
void Replay::enter_queue(Index first) {
  const Operation& operation = store_.operations[first];
  if (operation.device >= queues_.size() || options_.launch_queue_depth == 0) return;
  Queue& queue = queues_[operation.device];
  if (queue.left.size() < options_.launch_queue_depth) queue.left.resize(options_.launch_queue_depth);
  Arrival& slot = queue.left[queue.next];
  ++queue.launches;
  if (++queue.next == options_.launch_queue_depth) queue.next = 0;
  slot.at = operation.start.ns;
  slot.in = operations_[first].start_in;
}

void Replay::replay_driver(Index call_index, Index line_index) {
  const Call& call = store_.calls[call_index];
  HostLine& line = this->line(line_index);
  advance_to(line, call, line_index);
  // Beside a call of another thread of the line that blocked: what that one waited for is not ours.
  const bool beside = call.start < line.at && line.blocked_thread != kNone &&
                      line.blocked_thread != call.thread && call.start >= line.before_at;
  const Lanes entered = beside ? line.before : line.shift;
  TimePoint start = std::max(call.start, std::min(line.at, call.end));
  const bool ends_before = call.end <= line.at;
  const CopyWait copy = copy_wait(call);
  const bool blocks = copy == CopyWait::kUntilDone;
  CallLabel label = label_of(call, copy);

  if (call.first_operation == kNone) {
    if (!ends_before) body(line, call, line.at, label, target_of(call, line.at));
    return pass_events(call);
  }
  const Operation& first = store_.operations[call.first_operation];
  threads_[call.thread] = {first.stream, first.device, call.end, {}, is_read_back(first)};
  if ((first.flags & record_flag::kPageable) != 0) {
    HoldingCopy& copied = threads_[call.thread].copied = copy_of(call);
    copied.counted = label.copy.kind != CopyKind::kUnknown;
    if (copied.counted) copied.bytes = 0;
  }
  if (!ends_before && !blocks) start = wait_for_queue(line, call, line.at, first.device);
  if (!ends_before && copy != CopyWait::kNoWait) {
    const TimePoint began = begin_copy(line, call, start, label);
    label.copy.counted = began > start;
    start = began;
  }
  const Lanes before = beside ? entered : line.shift;
  if (!ends_before && !blocks) body(line, call, start, label, std::nullopt);
  launch_operations(call_index, {line_index, start, before, label, copy, beside});
  if (!ends_before && blocks) body(line, call, line.at, label, end_of(call.first_operation));
  enter_queue(call.first_operation);
  pass_events(call);
}

// A thread that launches no compute (a loader that copies, a background checkpoint) keeps pace with
// the line that leads its device; its own host time is nobody's lead. But what it was labelled to be
// at since its last call takes no time in the worlds without that cause.
Lanes Replay::side_shift(const Call& call, const HostLine* leader) {
  Lanes shift{};
  if (leader != nullptr) {
    const bool beside = leader->blocked_thread != kNone && call.start < leader->at &&
                        call.start >= leader->before_at;
    shift = beside ? leader->before : leader->shift;
  }
  const auto& owners = labels_[call.thread].owners();
  auto segment = std::upper_bound(
      owners.begin(), owners.end(), threads_[call.thread].side_until,
      [](TimePoint time, const Segment& owner) { return time < owner.end; });
  for (; segment != owners.end() && segment->start < call.start; ++segment) {
    const Interval done = Interval{segment->start, segment->end}.clipped_to(
        {threads_[call.thread].side_until, call.start});
    add_to(shift, worlds_without(segment->label.cause), done.length().ns);
  }
  return shift;
}

void Replay::replay_side(Index call_index, Index) {
  const Call& call = store_.calls[call_index];
  if (call.first_operation != kNone) {
    const Operation& first = store_.operations[call.first_operation];
    const Index leader = ties_.leader_of(first.device);
    const Lanes shift = side_shift(call, leader != kNone ? &this->line(leader) : nullptr);
    threads_[call.thread] = {first.stream, first.device, call.end, {}};
    ++order_;
    for (Index i = call.first_operation; i != kNone; i = store_.operations[i].next) {
      const Operation& operation = store_.operations[i];
      OperationReplay& replay = operations_[i];
      replay.launched_by(call, leader, ties_.thread_id(call.thread));
      const bool returned = operation.start >= call.end;
      const Arrival launch =
          host_arrival(returned ? call.end : std::min(call.start, operation.start), shift);
      replay_operation(i, &launch, nullptr, returned);
    }
  }
  pass_events(call);
}

void Replay::replay_call(Index call_index) {
  const Call& call = store_.calls[call_index];
  if (call.nested) return;
  const Index line_index = ties_.line_of(call.thread);
  if (drives(line_index)) replay_driver(call_index, line_index);
  else replay_side(call_index, line_index);
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
