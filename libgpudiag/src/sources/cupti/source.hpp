// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// The live GPU source: activity records (no subscriber needed) and, where the one subscriber is free
// and nobody else is likely to want it, callbacks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/names.hpp"
#include "record/sink.hpp"
#include "sources/host/thread_log.hpp"

namespace gpudiag {

class ActivityRecorder;

enum class CallbackMode : std::uint8_t { kAuto, kOn, kOff };

struct CuptiSettings {
  std::string path;                                ///< of libcupti; empty: found
  CallbackMode callbacks = CallbackMode::kAuto;
  /// 64 KiB each, some 100,000 records in all: what a starved drain thread may find at once, and the
  /// engine needs twice their size again. With 512 of them a run at load 13 reached 79 MiB of our own.
  std::size_t buffers = 256;
  bool driver_calls = true;
  bool markers = false;                            ///< NVTX ranges come as CUPTI's records
};

/// Something the reader of the ledger must know, said once: `code` for programs, `text` for people.
struct SourceNote {
  std::string code;
  std::string text;
  bool tell = true;  ///< on the log too
};

/// What the source has seen so far.
struct CuptiCounts {
  std::uint64_t calls = 0;
  std::uint64_t launches = 0;
  std::uint64_t operations = 0;
  std::uint64_t buffers_made = 0;
  std::uint64_t buffers_asked = 0;  ///< times CUPTI asked for one
  std::uint64_t clock_steps = 0;
};

/// All functions are the drain thread's, but start(), which comes before it. No lock of ours is held
/// into CUPTI. Nothing here is ever undone but what can be undone safely: kinds are disabled and the
/// subscriber is given back; CUPTI stays loaded and never is finalised.
///
///   idle ─start()─► recording ─stop()─► draining ─hand_over()─► aside ─resume()─► recording
///                       └──────────────────concede()───────────────┘
///
/// Aside, CUPTI is somebody else's and is not called. The object must live for ever: CUPTI may call
/// back after stop().
class CuptiSource {
 public:
  explicit CuptiSource(NameTable& names);
  ~CuptiSource();
  CuptiSource(const CuptiSource&) = delete;
  CuptiSource& operator=(const CuptiSource&) = delete;

  /// Finds CUPTI and enables what the ledger needs. False, and everything after is a no-op, where
  /// there is no GPU driver (no note then), no usable CUPTI, or a tool of the user's at work.
  /// With `aside` all of that is for resume().
  bool start(const CuptiSettings& settings, bool aside = false);
  bool active() const;
  /// Where start() found no driver, but the process has loaded one by now (from a place of its own, as
  /// a framework's wheel may): as start(). Cheap where there is nothing to do.
  bool start_late();

  /// NVTX ranges of CUPTI's go to `take` (CuptiSettings::markers).
  void set_range_sink(std::function<void(const HostMessage&, std::string_view text)> take);
  /// They come by another way after all.
  void drop_markers();

  /// One round: passes on what is in filled buffers. With `flush`, CUPTI is first asked (never
  /// forced) for those that are part full; it withholds a buffer with one unfinished record.
  void poll(RecordSink& sink, bool flush);
  /// What ended before this time has been passed on, as of a round that began at `asked`: CUPTI may
  /// withhold records as old as the oldest buffer it holds. Never more than five seconds back, so that
  /// one kernel that does not end does not stop the clock of everything else.
  TimePoint delivered_until(TimePoint asked) const;
  /// Filled buffers wait and a round should come early.
  bool backlog() const;
  /// Turns a callback's message of a thread log into a record.
  Record call_record(const HostMessage& message);

  /// Disables everything; then poll() until done() or the caller's patience ends; then force_out().
  void stop();
  bool done() const;
  /// Hands out the unfinished too; only ever at the end, or before another profiler's turn.
  void force_out(RecordSink& sink);

  /// After stop() and force_out(): what is CUPTI's is as if we had not been there.
  void hand_over();
  /// Somebody has taken the buffers already, or CUPTI with all of them. What it holds of ours is given up;
  /// kinds are left enabled, since they may be the other one's by now.
  void concede();
  bool aside() const;
  /// CUPTI's last answer was that nobody is registered for buffers: somebody has called cuptiFinalize.
  bool registration_lost() const;
  /// After concede(): the buffers are nobody else's now. True where CUPTI asks us for some, or says that
  /// nobody is registered; it is asked that every 5 s at first and every minute in the end.
  bool may_resume(TimePoint at);
  /// Takes the buffers and enables kinds again, in whatever clock records come now. False, with a note,
  /// where that fails; then there are no records any more.
  bool resume();

  /// Records fewer calls from now on, to get cheaper.
  void drop_driver_calls();
  /// Times CUPTI's clock was found to be another one, since the start.
  std::uint64_t clocks_exchanged() const;

  CuptiCounts counts() const;
  std::vector<SourceNote> take_notes();

 private:
  std::unique_ptr<ActivityRecorder> recorder_;
};

}  // namespace gpudiag
