// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// The streaming replay (attribution.md, section 4): by how much each host line and each operation
// would be earlier in every world. Works in the order of the host's calls, in which everything that
// an operation or a wait depends on has come before it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/host_timeline.hpp"
#include "attribution/piece_log.hpp"
#include "attribution/worlds.hpp"
#include "timeline/labels.hpp"
#include "timeline/store.hpp"
#include "timeline/ties.hpp"

namespace gpudiag {

/// Earlier than anything, with room for sums.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 2;

/// What the replay knows of an operation; stands beside the store's, by the same Index.
struct OperationReplay {
  Lanes start_in{};        ///< when it starts in each world
  WorldMask no_length = 0; ///< worlds in which it has no length
  std::uint64_t order = 0; ///< launch order, for all operations of one call the same
  TimePoint launch_start;  ///< L0; start of the operation where no launch was seen
  Index line = kNone;      ///< whose host time a gap before it is charged to
  NameId launch_name{};
  ThreadId launch_thread{};
  bool launched = false;   ///< a launch was seen

  /// Begins anew, field by field: a whole object that is built and copied costs more than the rest of
  /// a launch's replay. `start_in` and `order` follow when the operation is replayed.
  void launched_by(const Call& call, Index host_line, ThreadId thread) {
    no_length = 0;
    launch_start = call.start;
    line = host_line;
    launch_name = call.name;
    launch_thread = thread;
    launched = true;
  }
};

/// The latest piece of a cause, to which is charged what the cause claims later. A wait of
/// microseconds right behind one of milliseconds is not what took the lead.
struct LastPiece {
  EvidenceKey key{};
  TimePoint end = kTimeMin;
  DurationNs length;

  void see(const Piece& piece, DurationNs same_breath) {
    constexpr std::int64_t kTrifle = 10;
    const DurationNs now = piece.end - piece.start;
    if (end != kTimeMin && piece.start - end < same_breath && now.ns * kTrifle < length.ns) return;
    key = piece.key;
    end = piece.end;
    length = now;
  }
};

/// The host time of a line as far as it has been replayed.
struct HostLine {
  TimePoint at = kTimeMin;
  Lanes shift{};                 ///< by how much the host would be earlier, in each world
  TimePoint before_at = kTimeMin;
  Lanes before{};                ///< shift before the last call that blocked
  Index blocked_thread = kNone;  ///< whose call that was
  std::int64_t latency = 0;      ///< from a launch's return to its start, as last seen
  PieceLog log;
  std::array<LastPiece, kCauseCount> last{};
  EvidenceTable evidence;        ///< of the host's iteration that is open
  DurationNs own;                ///< our own time in it
  std::uint64_t calls = 0;
};

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

class Replay {
 public:
  Replay(const EngineOptions& options, Store& store, Ties& ties, std::vector<ThreadLabels>& labels)
      : options_(options), store_(store), ties_(ties), labels_(labels) {}

  /// To be called before calls are replayed that may be new to the ties.
  void prepare();
  void replay_call(Index call);
  /// An operation whose launch was never seen: it follows its stream.
  void replay_orphan(Index operation);

  OperationReplay& operation(Index index) { return operations_[index]; }
  /// When the operation ends, in every world.
  Arrival end_of(Index operation) const;
  HostLine& line(Index line);
  const StreamState& stream(Index stream) { return stream_state(stream); }
  std::uint64_t launches() const { return order_; }
  /// How often the replay with nothing removed failed to give the trace back.
  std::uint64_t mismatches() const { return mismatches_; }

  void moved(Index from, Index to) { operations_[to] = operations_[from]; }
  void resize() { operations_.resize(store_.operations.size()); }

 private:
  /// How a copy holds up the call that asks for it.
  enum class CopyWait : std::uint8_t { kNoWait, kWhileStaged, kUntilDone };

  struct Event {
    CorrelationId record{};
    Index stream = kNone;
    Arrival when;
  };
  struct EventHistory {
    Event latest;
    Event previous;
  };
  struct Queue {
    std::vector<Arrival> left;   ///< when each of the last `depth` launches left the queue
    std::uint32_t next = 0;      ///< the oldest of them, and the place of the next
    std::uint64_t launches = 0;
    bool disproved = false;      ///< the trace shows a deeper queue
  };
  struct ThreadState {
    Index stream = kNone;
    Index device = kNone;
    TimePoint side_until = kTimeMin;  ///< end of its last launch, where it is replayed beside a line
    HoldingCopy copied;               ///< by its last call, where that was a copy of pageable memory
    bool read_back = false;           ///< its last call copied a few bytes to the host
  };

  bool drives(Index line) const { return line < drives_.size() && drives_[line]; }
  Witness witness(Index thread) const;
  void gather_others(Index line, Index thread);
  void advance_to(HostLine& line, const Call& call, Index line_index);
  void apply(HostLine& line, const Piece& piece, bool add_time);
  void body(HostLine& line, const Call& call, TimePoint start, CallLabel label,
            const std::optional<Arrival>& target);
  void wait(HostLine& line, TimePoint start, TimePoint end, const Arrival& target, Cause cause);
  /// How a call came to launch: the line and its shift by then, when, and as what.
  struct Launch {
    Index line;
    TimePoint start;
    const Lanes& before;
    CallLabel label;
    CopyWait copy;
    bool beside;  ///< while another thread of the line is blocked
  };
  void replay_driver(Index call_index, Index line_index);
  void launch_operations(Index call_index, const Launch& from);
  void enter_queue(Index first);
  Lanes side_shift(const Call& call, const HostLine* leader);
  void replay_side(Index call_index, Index line_index);
  TimePoint wait_for_queue(HostLine& line, const Call& call, TimePoint start, Index device);
  CallLabel label_of(const Call& call, CopyWait copy);
  HoldingCopy copy_of(const Call& call) const;
  HoldingCopy copy_behind(const Call& wait);
  bool value_behind(const Call& wait);
  std::optional<Arrival> target_of(const Call& call, TimePoint start);
  std::optional<Arrival> stream_target(const Call& call, TimePoint start);
  std::optional<Arrival> event_target(const Call& call, TimePoint start);
  std::optional<Arrival> device_target(const Call& call, TimePoint start, Index device);
  CopyWait copy_wait(const Call& call) const;
  bool is_item_copy(Index call_index) const;
  WorldMask worlds_without_copy(Index call_index, const Operation& copy, bool blocked) const;
  TimePoint begin_copy(HostLine& line, const Call& call, TimePoint start, CallLabel label);
  Arrival launch_of(const Call& call, const Operation& operation, TimePoint start,
                    const Lanes& before, const HostLine& line, Cause cause, bool blocking) const;
  /// When each of what an operation waits for would let it start.
  struct Pulls {
    std::int64_t tail = 0;
    std::int64_t launch = 0;
    std::int64_t awaited = 0;
    std::int64_t queued_more = 0;  ///< later than `tail` where launches take no time
    bool any = false;              ///< there is something that it waits for
  };
  Pulls pulls_on(std::int64_t start, StreamState& stream, const Arrival* launch, HostLine* line,
                 bool returned);
  static void start_in_worlds(Lanes& in, const Pulls& pulls, const StreamState& stream,
                              const Arrival* launch);
  void replay_operation(Index index, const Arrival* launch, HostLine* line, bool returned);
  void pass_events(const Call& call);
  void record_event(const SyncPoint& record);
  void make_stream_wait(const SyncPoint& sync);
  const Event* find_event(std::uint64_t id, CorrelationId record) const;
  StreamState& stream_state(Index stream);

  const EngineOptions& options_;
  Store& store_;
  Ties& ties_;
  std::vector<ThreadLabels>& labels_;
  std::vector<OperationReplay> operations_;
  std::vector<std::unique_ptr<HostLine>> lines_;
  std::vector<bool> drives_;
  std::vector<StreamState> streams_;
  std::vector<ThreadState> threads_;
  std::vector<Queue> queues_;
  std::unordered_map<std::uint64_t, EventHistory> events_;
  std::vector<std::uint64_t> event_order_;
  std::vector<Piece> pieces_;
  std::vector<Witness> others_;
  Index others_line_ = kNone, others_thread_ = kNone;
  std::uint64_t order_ = 0;
  std::uint64_t merges_ = 0;
  std::uint64_t mismatches_ = 0;
  bool malloc_waits_ = true;
  bool free_waits_ = true;
};

}  // namespace gpudiag
