// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> attribution -> report.
// One live session's records on their way: the thread logs and CUPTI in, the engine and the outputs
// out. No thread of its own: whoever owns it calls round().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attribution/engine.hpp"
#include "attribution/ranks/collective_watch.hpp"
#include "record/recording.hpp"
#include "session/aside.hpp"
#include "session/budget.hpp"
#include "session/live_names.hpp"
#include "session/outputs.hpp"
#include "session/peers/peers.hpp"
#include "session/peers/rank_tail.hpp"
#include "sources/cupti/source.hpp"
#include "sources/host/watcher.hpp"
#include "sources/nccl/nccl_join.hpp"
#include "sources/sanitizer.hpp"
#include "timeline/range_table.hpp"

namespace gpudiag {

/// Not thread-safe: the drain thread owns it.
class Pipeline {
 public:
  /// `names` and `source` outlive all pipelines of the process; `source` has been started or not.
  Pipeline(const Settings& settings, const SessionInfo& info, NameTable& names, CuptiSource& source,
           LatestIteration& latest, TimePoint started);

  /// Takes what has come. With `flush`, what CUPTI has finished is asked for first, and time-outs run.
  void round(bool flush);
  bool backlog() const { return source_.backlog(); }
  /// Looks at what the job's threads do, where a gap is long and a look is due. Between rounds too.
  void look();
  /// When the next look is due; kTimeMax: not until a round has found a reason.
  TimePoint look_due() const { return watching_ ? watcher_.due() : kTimeMax; }
  /// The threads' logs had so much in the last round that they should be looked at sooner than usual.
  bool logs_busy() const { return logs_busy_; }
  /// Nothing will follow: disables the source, waits for what is still with the driver, until
  /// `deadline` at the longest, closes the books.
  void finish(TimePoint deadline);

  /// CUPTI is `who`'s from here on: passes on what is ours still, up to 0.3 s long, and hands it over.
  void stand_aside(std::string_view who);
  /// CUPTI is ours again, where it can be had.
  void resume();
  /// The same after a profiler that took it unasked and is known to have ended.
  void resume_unasked();
  bool aside() const { return aside_.open(); }

  void note(const std::string& code, const std::string& text, bool tell);

 private:
  /// The first stage: keeps account of our own time and of devices, then hands on.
  class Intake final : public RecordSink {
   public:
    explicit Intake(Pipeline& pipeline) : pipeline_{pipeline} {}
    void add(const Record& record) override;

   private:
    Pipeline& pipeline_;
  };
  /// The last one: the recording and the engine see the same records in the same order.
  class Fork final : public RecordSink {
   public:
    explicit Fork(Pipeline& pipeline) : pipeline_{pipeline} {}
    void add(const Record& record) override;

   private:
    Pipeline& pipeline_;
  };

  /// Times up to a second after `at` are of this session's clock.
  void believe_until(TimePoint at);
  void drain_logs();
  void take_message(const HostMessage& message, std::string_view text);
  void take_nccl_call(const HostMessage& message, std::string_view bytes);
  void watch_if_wait(const Record& range, std::string_view text);
  void report_lost(std::uint64_t count);
  void tick(TimePoint asked);
  void meet_device(DeviceId device);
  void check_self(TimePoint at);
  void check_taken(TimePoint at);
  void concede(std::string_view who);
  void emit_gap(TimePoint until);
  void drain_source(TimePoint until);
  void check_budget(TimePoint at);
  void take_notes();
  void take_iteration(const IterationLedger& ledger);
  void meet_peers(TimePoint at);
  PeerState peer_state(TimePoint at);

  NameTable& names_;
  CuptiSource& source_;
  LiveNames live_names_;
  Outputs outputs_;
  SessionInfo info_;
  std::unique_ptr<RecordingWriter> recording_;
  RangeTable ranges_;  ///< tells waits among the ranges, for those are watched
  CollectiveWatch collectives_;
  RankTail tail_;
  std::unique_ptr<Peers> peers_;  ///< none: this rank is alone, or nobody is to be asked
  ThreadLooker looker_;
  ProcessView own_view_;
  std::string held_;              ///< what held up the main thread at the last look
  TimePoint held_since_;
  Engine engine_;
  Fork fork_{*this};
  NcclJoin nccl_;
  Sanitizer sanitizer_{nccl_};
  Intake intake_{*this};
  Watcher watcher_;
  bool watching_;
  Budget budget_;
  TimePoint started_;
  TimePoint believed_until_;
  TimePoint last_quality_;
  TimePoint first_launch_seen_;
  std::vector<DeviceId> devices_;
  DurationNs own_;
  bool drop_ranges_ = false;
  bool logs_busy_ = false;
  bool told_recording_ = false;
  PatternState::Stage pattern_told_ = PatternState::kLooking;
  bool told_no_operations_ = false;
  Aside aside_;
  TakeoverWatch watch_;
  TimePoint ticked_;
  std::uint64_t clocks_exchanged_;
  std::uint64_t records_seen_ = 0;
  int lost_registrations_ = 0;  // in a row, without a record between
  CuptiCounts at_start_;
};

}  // namespace gpudiag
