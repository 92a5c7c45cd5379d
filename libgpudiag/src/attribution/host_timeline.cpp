// SPDX-License-Identifier: Apache-2.0
#include "attribution/host_timeline.hpp"

#include <algorithm>
#include <tuple>

namespace gpudiag {
namespace {

// The first change of label of `segments` after `t`, no later than `limit`.
template <typename Parts>
TimePoint next_change(const Parts& segments, TimePoint t, TimePoint limit) {
  const auto next = std::upper_bound(
      segments.begin(), segments.end(), t,
      [](TimePoint time, const auto& segment) { return time < segment.end; });
  if (next == segments.end()) return limit;
  return std::min(limit, next->start > t ? next->start : next->end);
}

bool in_own(const ThreadLabels& labels, TimePoint t) {
  const auto& own = labels.own();
  const auto next =
      std::upper_bound(own.begin(), own.end(), t,
                       [](TimePoint time, const Interval& part) { return time < part.end; });
  return next != own.end() && next->start <= t;
}

TimePoint next_change_of(const ThreadLabels& labels, TimePoint t, TimePoint limit) {
  limit = next_change(labels.owners(), t, limit);
  limit = next_change(labels.weak(), t, limit);
  return next_change(labels.own(), t, limit);
}

const Segment* label_at(const ThreadLabels& labels, TimePoint t) {
  if (const auto* owner = ThreadLabels::at(labels.owners(), t)) return owner;
  return ThreadLabels::at(labels.weak(), t);
}

bool began_before(const Segment& a, const Segment& b) {
  const auto rank = [](const Segment& segment) {
    return std::tuple(segment.range_start, -segment.range_end.ns, segment.label.cause,
                      segment.label.sub_cause, segment.name);
  };
  return rank(a) < rank(b);
}

Piece own_piece(TimePoint start, TimePoint end, const Witness& thread) {
  return {start, end, {Cause::kHost, SubCause::kNone, kOwnCode, thread.id}, false, false};
}

Piece labelled_piece(TimePoint start, TimePoint end, const Segment& segment, ThreadId thread) {
  const bool late = segment.label.cause == Cause::kDataLoading &&
                    segment.label.mode == BatchMode::kWait && end == segment.range_end &&
                    segment.range_end - segment.range_start > kReadyBatch;
  return {start, end,
          {segment.label.cause, segment.label.sub_cause, segment.name, thread}, false, late};
}

Piece silent_piece(TimePoint start, TimePoint end, const Witness& thread,
                   const EngineOptions& options) {
  if (end - start <= options.dispatch_limit)
    return {start, end, {Cause::kLaunchOverhead, SubCause::kDispatchGap, kNoName, thread.id}, true,
            false};
  const auto* context =
      thread.labels->context_at({start.ns + (end.ns - start.ns) / 2});
  EvidenceKey key{Cause::kHost, SubCause::kNone, kNoName, thread.id};
  if (context != nullptr) {
    key.sub_cause = context->label.sub_cause;
    key.name = context->name;
  }
  return {start, end, key, false, false};
}

// Extends the last piece where the same goes on.
void append(std::vector<Piece>& out, std::size_t first, const Piece& piece) {
  if (out.size() > first && out.back().end == piece.start && out.back().key == piece.key &&
      out.back().anonymous == piece.anonymous && !out.back().late_batch) {
    out.back().end = piece.end;
    out.back().late_batch = piece.late_batch;
    return;
  }
  out.push_back(piece);
}

}  // namespace

void cut_silence(TimePoint start, TimePoint end, const Witness& first,
                 const std::vector<Witness>& others, const EngineOptions& options,
                 std::vector<Piece>& out) {
  if (end <= start) return;
  const std::size_t begin = out.size();
  TimePoint silent_since = start;
  const auto end_silence = [&](TimePoint until) {
    if (silent_since < until) append(out, begin, silent_piece(silent_since, until, first, options));
  };
  for (TimePoint t = start; t < end;) {
    TimePoint until = next_change_of(*first.labels, t, end);
    Piece piece;
    bool labelled = true;
    if (in_own(*first.labels, t) && label_at(*first.labels, t) == nullptr) {
      piece = own_piece(t, until, first);
    } else if (const auto* segment = label_at(*first.labels, t)) {
      piece = labelled_piece(t, until, *segment, first.id);
    } else {
      // Of several others that have something to say, the one that has been at it longest.
      const Witness* speaker = nullptr;
      const Segment* seen = nullptr;
      for (const auto& other : others) {
        until = next_change_of(*other.labels, t, until);
        const auto* label = label_at(*other.labels, t);
        if (label == nullptr || (seen != nullptr && !began_before(*label, *seen))) continue;
        speaker = &other;
        seen = label;
      }
      labelled = seen != nullptr;
      if (labelled) piece = labelled_piece(t, until, *seen, speaker->id);
    }
    if (labelled) {
      end_silence(t);
      append(out, begin, piece);
      silent_since = until;
    }
    t = until;
  }
  end_silence(end);
}

CallLabel label_of_call(ApiClass api, DurationNs length, bool blocked,
                        const EngineOptions& options) {
  switch (api) {
    case ApiClass::kStreamSync: return {Cause::kSync, SubCause::kStreamSync};
    case ApiClass::kDeviceSync: return {Cause::kSync, SubCause::kDeviceSync};
    case ApiClass::kEventSync: return {Cause::kSync, SubCause::kEventSync};
    case ApiClass::kMalloc: return {Cause::kAllocation, SubCause::kDeviceMalloc};
    case ApiClass::kFree: return {Cause::kAllocation, SubCause::kDeviceFree};
    case ApiClass::kHostMalloc:
    case ApiClass::kHostFree: return {Cause::kAllocation, SubCause::kHostMalloc};
    case ApiClass::kMemcpy:
    case ApiClass::kMemcpyAsync:
      if (blocked) return {Cause::kSync, SubCause::kBlockingCopy};
      return {};
    case ApiClass::kGraphLaunch: return {Cause::kLaunchOverhead, SubCause::kGraphLaunch};
    case ApiClass::kInstantiate:
    case ApiClass::kModule:
      // Building a graph or loading code is work of its own once it is no longer a look-up.
      if (length > options.dispatch_limit) return {Cause::kHost, SubCause::kCompile};
      return {};
    default: return {};
  }
}

void cut_call(TimePoint start, TimePoint end, NameId name, CallLabel label, const Witness& thread,
              std::vector<Piece>& out) {
  EvidenceKey key{label.cause, label.sub_cause, name, thread.id};
  const bool anonymous = label.cause == Cause::kLaunchOverhead;
  if (!anonymous)
    if (const auto* around = thread.labels->context_at(start)) key.inside = around->name;
  if (label.copy.kind != CopyKind::kUnknown) {
    key.name = label.copy.name;
    key.copy = label.copy.kind;
    key.pageable = label.copy.pageable;
  }
  for (TimePoint t = start; t < end;) {
    // Our own time is no launch overhead of the job's.
    const TimePoint until =
        anonymous ? next_change(thread.labels->own(), t, end) : end;
    if (anonymous && in_own(*thread.labels, t)) out.push_back(own_piece(t, until, thread));
    else out.push_back({t, until, key, anonymous, false, label.copy.counted});
    t = until;
  }
}

}  // namespace gpudiag
