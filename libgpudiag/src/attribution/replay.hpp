// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// The streaming replay (attribution.md, section 4): by how much each host line and each operation
// would be earlier in every world. Works in the order of the host's calls, in which everything that
// an operation or a wait depends on has come before it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/event_times.hpp"
#include "attribution/host_line.hpp"
#include "attribution/host_timeline.hpp"
#include "attribution/launch_queue.hpp"
#include "attribution/operation_start.hpp"
#include "attribution/worlds.hpp"
#include "timeline/host_samples.hpp"
#include "timeline/labels.hpp"
#include "timeline/store.hpp"
#include "timeline/ties.hpp"

namespace gpudiag {

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

/// What is read back with less is a value that somebody looks at.
inline constexpr std::uint64_t kItemBytes = 1024;

/// A few bytes to the host: a value to look at.
inline bool is_read_back(const Operation& operation) {
  return operation.kind == RecordKind::kMemcpy && operation.copy == CopyKind::kDeviceToHost &&
         operation.bytes <= kItemBytes;
}

class Replay {
 public:
  Replay(const EngineOptions& options, Store& store, Ties& ties, std::vector<ThreadLabels>& labels,
         const HostSamples& samples)
      : options_(options), store_(store), ties_(ties), labels_(labels), samples_(samples) {}

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
  const WorldMasks& worlds() const { return worlds_; }
  /// Asks another question in the asked world at `place`, as if all had happened as observed until now.
  void ask(std::size_t place, const Question& question);
  /// Device time of all communication, and of all copies, since the last call.
  std::pair<DurationNs, DurationNs> take_busy() {
    return {std::exchange(communication_, {}), std::exchange(copies_, {})};
  }
  /// How often the replay with nothing removed failed to give the trace back.
  std::uint64_t mismatches() const { return mismatches_; }

  void moved(Index from, Index to) { operations_[to] = operations_[from]; }
  void resize() { operations_.resize(store_.operations.size()); }

 private:
  /// How a copy holds up the call that asks for it.
  enum class CopyWait : std::uint8_t { kNoWait, kWhileStaged, kUntilDone };

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
  void wait(HostLine& line, TimePoint start, TimePoint end, const Arrival& target, WorldMask void_in);
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
                    const Lanes& before, const HostLine& line, WorldMask without,
                    bool blocking) const;
  void replay_operation(Index index, const Arrival* launch, HostLine* line, bool returned);
  void pass_events(const Call& call);
  void record_event(const SyncPoint& record);
  void make_stream_wait(const SyncPoint& sync);
  StreamState& stream_state(Index stream);

  const EngineOptions& options_;
  Store& store_;
  Ties& ties_;
  std::vector<ThreadLabels>& labels_;
  const HostSamples& samples_;
  WorldMasks worlds_;
  std::vector<OperationReplay> operations_;
  std::vector<std::unique_ptr<HostLine>> lines_;
  std::vector<bool> drives_;
  std::vector<StreamState> streams_;
  std::vector<ThreadState> threads_;
  std::vector<LaunchQueue> queues_;
  EventTimes events_;
  std::vector<Piece> pieces_;
  std::vector<Witness> others_;
  Index others_line_ = kNone, others_thread_ = kNone;
  DurationNs communication_, copies_;
  std::uint64_t order_ = 0;
  std::uint64_t merges_ = 0;
  std::uint64_t mismatches_ = 0;
  bool malloc_waits_ = true;
  bool free_waits_ = true;
};

}  // namespace gpudiag
