// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> [timeline] -> attribution -> report.
// What has been delivered and not yet been charged: calls, operations and what joins them, in flat
// vectors that are reused.
#pragma once

#include <cstdint>
#include <vector>

#include "record/ids.hpp"
#include "record/record.hpp"
#include "record/time.hpp"
#include "timeline/operation_class.hpp"

namespace gpudiag {

/// Position in one of the store's vectors; valid until the store is compacted.
using Index = std::uint32_t;
inline constexpr Index kNone = 0xffffffffu;

struct Call {
  TimePoint start;
  TimePoint end;
  CorrelationId correlation{};
  NameId name{};
  Index thread = kNone;
  Index first_operation = kNone;  ///< in order of start; the rest follow by Operation::next
  Index sync = kNone;
  Index event_record = kNone;
  std::uint16_t flags = 0;
  ApiClass api = ApiClass::kOther;
  bool nested = false;     ///< a driver call inside a runtime call, which stands for both
  bool capturing = false;  ///< recorded into a graph: nothing runs
  bool defective = false;  ///< has an operation whose times cannot be believed
  bool looked_for_pattern = false;
  bool looked_at = false;  ///< came after its time had been replayed, and has been judged for that
};

struct Operation {
  TimePoint start;
  TimePoint end;
  std::uint64_t bytes = 0;
  CorrelationId correlation{};
  NameId name{};
  Index device = kNone;
  Index stream = kNone;
  Index call = kNone;  ///< while the call is pending
  Index next = kNone;
  std::uint16_t flags = 0;
  RecordKind kind = RecordKind::kKernel;
  CopyKind copy = CopyKind::kUnknown;
  OperationClass type = OperationClass::kCompute;
  bool replayed = false;
  bool tied = false;       ///< its launch has been counted for its line
  bool duplicate = false;
};

/// What a wait waited for, or the record of an event.
struct SyncPoint {
  TimePoint end;
  std::uint64_t event = 0;
  CorrelationId correlation{};
  CorrelationId record_correlation{};
  Index stream = kNone;  ///< kNone: the whole device
  Index device = kNone;
  SyncKind kind = SyncKind::kUnknown;
};

/// A record that cannot be believed, kept so that its iteration is known to be wrong.
struct Defective {
  TimePoint at;               ///< of its call where joined; kTimeMin: not known
  CorrelationId correlation{};
  Index device = kNone;
  std::uint8_t reason = 0;    ///< index of an InvalidReason
  std::uint64_t count = 1;
  bool operation = false;
};

/// Calls and operations of one process, joined by correlation id: an operation belongs to the call
/// with its id, whatever that call is named; a graph launch has many operations; a driver call nested
/// in a runtime call stands behind the latter, whether they share an id or not.
class Store {
 public:
  std::vector<Call> calls;            ///< by start, once prepared
  std::vector<Operation> operations;  ///< as delivered
  std::vector<SyncPoint> syncs;
  std::vector<SyncPoint> event_records;
  std::vector<Defective> defects;
  std::vector<Index> by_start;        ///< operations in order of start, once prepared

  /// Sorts and joins what was added since the last time. Returns how many duplicates turned up.
  std::uint64_t prepare();
  /// Forgets calls before `first_kept`, operations for which `retired` says so, and what hung on
  /// them. Invalidates every Index; `moved(from, to)` is told where a kept operation went.
  template <typename Retired, typename Moved>
  void compact(Index first_kept, Retired retired, Moved moved);

  std::size_t pending() const { return calls.size() + operations.size() + syncs.size(); }

 private:
  void sort_calls();
  void fold_nested_calls();
  void mark_captures();
  void keep_capture_state(Index first_kept);
  void sort_operations();
  void build_join();
  Index find(CorrelationId correlation) const;
  std::uint64_t join_operations();
  void join_syncs();
  void join_defects();

  struct Slot {
    CorrelationId correlation{};
    Index call = kNone;
  };
  std::vector<Slot> slots_;
  std::vector<std::pair<std::int64_t, Index>> keys_;
  std::vector<Call> sorted_calls_;
  std::vector<Index> outer_;           ///< by call: the call that stands for it
  std::vector<Index> last_of_thread_;
  std::vector<bool> capturing_;  ///< by thread, where the first pending call stands
};

template <typename Retired, typename Moved>
void Store::compact(Index first_kept, Retired retired, Moved moved) {
  // A sync record whose call has been charged has done its work; one without a call yet waits.
  const auto spent = [&](const SyncPoint& point, TimePoint frontier) {
    const Index call = find(point.correlation);
    return call != kNone ? call < first_kept : point.end < frontier;
  };
  const TimePoint frontier = first_kept > 0 ? calls[first_kept - 1].start : kTimeMin;
  std::erase_if(syncs, [&](const SyncPoint& point) { return spent(point, frontier); });
  std::erase_if(event_records, [&](const SyncPoint& point) { return spent(point, frontier); });
  keep_capture_state(first_kept);
  calls.erase(calls.begin(), calls.begin() + first_kept);
  Index to = 0;
  for (Index from = 0; from < operations.size(); ++from) {
    if (retired(from)) continue;
    operations[to] = operations[from];
    operations[to].call = kNone;
    operations[to].next = kNone;
    moved(from, to);
    ++to;
  }
  operations.resize(to);
  by_start.clear();
}

}  // namespace gpudiag
