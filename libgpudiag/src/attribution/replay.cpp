// SPDX-License-Identifier: Apache-2.0
#include "attribution/replay.hpp"

#include <algorithm>
#include <utility>

#include "attribution/host_evidence.hpp"

namespace gpudiag {

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
  if (add_time) add_to(line.shift, worlds_.without(piece.key.cause, piece.key.sub_cause), length);
  if (piece.late_batch) {
    const WorldMask gone = worlds_.without(Cause::kDataLoading, piece.key.sub_cause);
    for (std::size_t w = 0; w < kLaneCount; ++w)
      if ((gone & world(w)) == 0) line.shift[w] = std::min<std::int64_t>(0, line.shift[w] + length);
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
  name_by_samples(pieces_, 0, samples_);
  for (const Piece& piece : pieces_) apply(line, piece, true);
}

void Replay::body(HostLine& line, const Call& call, TimePoint start, CallLabel label,
                  const std::optional<Arrival>& target) {
  if (call.end <= start) return;
  if (target) {
    line.before_at = start;
    line.before = line.shift;
    line.blocked_thread = call.thread;
    wait(line, start, call.end, *target, worlds_.without(label.cause, label.sub_cause));
  }
  pieces_.clear();
  cut_call(start, call.end, call.name, label, witness(call.thread), pieces_);
  for (const Piece& piece : pieces_) apply(line, piece, !target);
  if (label.copy.bytes != 0 && !pieces_.empty()) line.evidence.add_bytes(pieces_.back().key, label.copy.bytes);
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
    add_to(shift, worlds_.without(segment->label.cause, segment->label.sub_cause), done.length().ns);
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

}  // namespace gpudiag
