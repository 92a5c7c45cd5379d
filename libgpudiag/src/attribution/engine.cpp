// SPDX-License-Identifier: Apache-2.0
#include "attribution/engine.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "attribution/device_ledger.hpp"
#include "attribution/intake.hpp"
#include "attribution/replay.hpp"

namespace gpudiag {
namespace {

// How long a copy's record is waited for before it is taken to have moved nothing, an operation's
// launch before it is taken to be unrecorded, and operations that might still reach into a window
// on another stream: twice the slowest delivery (200 ms between flushes, held back by one unfinished
// record) with room to spare, and short enough for a line within two seconds.
constexpr DurationNs kPatience = seconds(1);

// How far back host time is kept for a device or a thread that has gone quiet.
constexpr DurationNs kRemembered = seconds(60);

// Bounds memory: a graph a millisecond for as long as operations are waited for, six times over.
constexpr std::size_t kUnfinishedKept = 65'536;

// A device that never works again keeps each of them.
constexpr std::size_t kHolesKept = 1000;

constexpr std::size_t at(InvalidReason reason) { return static_cast<std::size_t>(reason); }

bool is_launch(ApiClass api) { return api == ApiClass::kLaunch || api == ApiClass::kGraphLaunch; }
bool is_copy(ApiClass api) {
  return api == ApiClass::kMemcpy || api == ApiClass::kMemcpyAsync || api == ApiClass::kMemset;
}

}  // namespace

class Engine::Impl {
 public:
  Impl(const EngineOptions& options, const NameTable& names, IterationCallback on_iteration)
      : options_(options), names_(names), on_iteration_(std::move(on_iteration)),
        in_(options_, names), replay_(options_, in_.store, in_.ties, in_.labels) {}

  void add(const Record& record) {
    in_.add(record);
    if (record.kind == RecordKind::kTick) advance(false);
    else fresh_ = true;
  }
  void finish() { advance(true); }
  const Quality& quality() const { return in_.quality; }

 private:
  /// What belongs to one device beside its ledger.
  struct Followed {
    DeviceLedger ledger;
    Index loop = kNone;               ///< kNone: windows of one second
    TimePoint host_start = kTimeMin;  ///< of the host's iteration that is open; kTimeMin: not known
    std::uint64_t count = 0;          ///< iterations so far
    std::uint64_t launches = 0;
    std::uint64_t operations = 0;
    std::uint64_t missing = 0;
    std::uint64_t mismatches = 0;
    bool first = true;                ///< the open iteration may have begun before the records
  };

  void advance(bool final);
  void prepare();
  void tie_operations();
  void choose_loops();
  bool better(const Loop& a, const Loop& b, Index device);
  bool worth_preparing() const;
  TimePoint next_start() const;
  std::optional<Boundary> next_boundary(Index loop) const;
  bool take_cuts(bool final);
  bool cut_at(TimePoint at, bool final);
  bool complete_until(TimePoint at);
  bool lacks_operation(const Call& call, TimePoint copies_until) const;
  void replay_until(TimePoint at, bool final);
  void replay_orphans_until(TimePoint at, bool final);
  bool queued_before_tracing(const Operation& operation);
  void note_progress();
  void remember_unfinished();
  void count_call(const Call& call);
  void end_iteration(Followed& device, const Boundary& boundary, bool gave_up, bool partial);
  void end_part(Followed& device);
  void count_defects(IterationLedger& ledger, const Followed& device, Index index, Interval window,
                     TimePoint until);
  static bool reaches_into(const Hole& hole, Interval window);
  bool is_past(const Hole& hole, TimePoint until) const;
  void close_windows(bool force);
  bool may_close(const PendingWindow& window, Index device) const;
  void reset_lines(TimePoint at);
  void split_long_iteration();
  void compact();

  const EngineOptions options_;
  const NameTable& names_;
  IterationCallback on_iteration_;
  Intake in_;
  Replay replay_;
  std::vector<Followed> devices_;
  std::size_t next_call_ = 0;
  std::size_t next_orphan_ = 0;
  TimePoint frontier_ = kBeforeAll;       ///< calls that began before have been replayed
  TimePoint window_start_ = kTimeMin;   ///< of a job without marks
  TimePoint late_before_ = kTimeMin;    ///< what ended before should have been here
  std::vector<TimePoint> joined_until_; ///< by thread: its last call whose operation has come
  TimePoint last_operation_ = kTimeMin; ///< end of the last operation that has come
  /// Calls that are gone while some of their operations may still come, by correlation: when they
  /// were let go.
  std::unordered_map<std::uint32_t, TimePoint> unfinished_;
  bool fresh_ = false;
};

std::optional<Boundary> Engine::Impl::next_boundary(Index loop) const {
  if (loop != kNone) {
    const Boundary* next = in_.loops[loop].next();
    return next != nullptr ? std::optional{*next} : std::nullopt;
  }
  if (window_start_ == kTimeMin || !in_.loops.empty()) return std::nullopt;
  const std::int64_t window = std::max<std::int64_t>(1, options_.window.ns);
  // A long silence is one window, not many empty ones.
  const std::int64_t silent = std::max<std::int64_t>(0, (next_start() - window_start_).ns);
  const std::int64_t windows = std::max<std::int64_t>(1, silent / window);
  return Boundary{window_start_ + DurationNs{windows * window}, kNoName, kNoIndex, false,
                  false};
}

// When the next call or operation that has not been replayed begins, or may.
TimePoint Engine::Impl::next_start() const {
  TimePoint next = kTimeMax;
  if (next_call_ < in_.store.calls.size()) next = in_.store.calls[next_call_].start;
  for (std::size_t i = next_orphan_; i < in_.store.by_start.size(); ++i) {
    const Operation& operation = in_.store.operations[in_.store.by_start[i]];
    if (operation.start >= next) break;
    if (operation.replayed || operation.call != kNone) continue;
    next = operation.start;
    break;
  }
  return next != kTimeMax ? next : std::max(window_start_, in_.ticked);
}

// Nothing to sort or join before a boundary has been reached.
bool Engine::Impl::worth_preparing() const {
  if (!fresh_ && in_.store.pending() == 0) return false;
  for (const Followed& device : devices_)
    if (!device.ledger.pending().empty()) return true;
  if (in_.store.pending() > options_.pending_records_limit) return true;
  for (const Loop& loop : in_.loops)
    if (loop.next() != nullptr && loop.next()->at <= in_.ticked) return true;
  return in_.loops.empty() && in_.first != kTimeMax &&
         std::max(in_.first, window_start_) + options_.window <= in_.ticked;
}

void Engine::Impl::tie_operations() {
  for (Operation& operation : in_.store.operations) {
    if (operation.tied || operation.duplicate || operation.call == kNone) continue;
    operation.tied = true;
    in_.ties.launched(in_.store.calls[operation.call].thread, operation.stream,
                      (operation.end - operation.start).ns,
                      operation.type == OperationClass::kCompute);
  }
}

bool Engine::Impl::better(const Loop& a, const Loop& b, Index device) {
  if (a.source() != b.source()) return a.source() < b.source();
  const bool a_launches = in_.ties.line_in_chain(device, in_.ties.line_of(a.thread()));
  const bool b_launches = in_.ties.line_in_chain(device, in_.ties.line_of(b.thread()));
  return a_launches != b_launches ? a_launches : more_trusted(a, b);
}

void Engine::Impl::choose_loops() {
  for (Index device = 0; device < devices_.size(); ++device) {
    Followed& followed = devices_[device];
    Index best = kNone;
    for (Index loop = 0; loop < in_.loops.size(); ++loop)
      if (best == kNone || better(in_.loops[loop], in_.loops[best], device)) best = loop;
    followed.loop = best;
  }
  for (Index device = 0; device < devices_.size(); ++device)
    if (devices_[device].loop != kNone)
      in_.ties.marks(in_.loops[devices_[device].loop].thread(), device);
}

void Engine::Impl::prepare() {
  fresh_ = false;
  for (Loop& loop : in_.loops) loop.prepare();
  for (ThreadLabels& labels : in_.labels) labels.prepare();
  in_.quality[Defect::kDuplicate] += in_.store.prepare();
  tie_operations();
  in_.ties.refresh();
  note_progress();
  while (devices_.size() < in_.ties.devices()) {
    const auto index = static_cast<Index>(devices_.size());
    devices_.push_back({DeviceLedger(index, in_.ties.device_id(index))});
  }
  choose_loops();
  replay_.prepare();
  for (Followed& device : devices_) device.ledger.reset_cursor();
  next_call_ = next_orphan_ = 0;
  if (window_start_ == kTimeMin && in_.first != kTimeMax) window_start_ = in_.first;
  // What ended before the last cut's tick and comes only now is late; its iteration is closed. A long
  // call that had not ended by then is not, however long it lies here until the next cut.
  for (Call& call : in_.store.calls) {
    if (call.start >= frontier_) break;
    if (!std::exchange(call.looked_at, true) && call.end < late_before_)
      ++in_.quality[Defect::kLate];
  }
}

bool Engine::Impl::lacks_operation(const Call& call, TimePoint copies_until) const {
  if (call.first_operation != kNone || call.nested || call.capturing || call.defective) return false;
  if ((call.flags & record_flag::kFailed) != 0) return false;
  if (is_launch(call.api)) return true;
  if (!is_copy(call.api)) return false;
  // A call that copies nothing never has an operation. One that waits in a long queue does: as long as
  // the device works and nothing that the thread launched later has run, it may be such a one.
  return call.start >= copies_until ||
         (last_operation_ > in_.ticked - kPatience && call.start > joined_until_[call.thread]);
}

void Engine::Impl::note_progress() {
  joined_until_.resize(std::max<std::size_t>(joined_until_.size(), in_.ties.threads()), kTimeMin);
  for (const Call& call : in_.store.calls)
    if (call.first_operation != kNone)
      joined_until_[call.thread] = std::max(joined_until_[call.thread], call.start);
  for (const Operation& operation : in_.store.operations)
    last_operation_ = std::max(last_operation_, operation.end);
}

// The nodes of a graph come as they end, however long it runs; a copy may have been given up too soon.
void Engine::Impl::remember_unfinished() {
  std::erase_if(unfinished_, [&](const auto& known) {
    return known.second + options_.give_up_after <= in_.ticked;
  });
  for (std::size_t i = 0; i < next_call_ && unfinished_.size() < kUnfinishedKept; ++i) {
    const Call& call = in_.store.calls[i];
    if (call.correlation == kNoCorrelation) continue;
    if (call.api == ApiClass::kGraphLaunch || (is_copy(call.api) && call.first_operation == kNone))
      unfinished_[raw(call.correlation)] = in_.ticked;
  }
}

bool Engine::Impl::complete_until(TimePoint until) {
  const TimePoint copies_until = in_.ticked - kPatience;
  for (std::size_t i = next_call_; i < in_.store.calls.size(); ++i) {
    const Call& call = in_.store.calls[i];
    if (call.start >= until) break;
    if (lacks_operation(call, copies_until)) return false;
  }
  return true;
}

// Tracing begins while the device works off what was launched before: such an operation comes before
// all of its stream whose launches were seen. That nobody saw its launch is no defect.
bool Engine::Impl::queued_before_tracing(const Operation& operation) {
  if (in_.first_call == kTimeMax) return false;
  if (operation.start >= replay_.stream(operation.stream).first_launched) return false;
  return operation.start < in_.first_call || raw(operation.correlation) < in_.first_correlation;
}

void Engine::Impl::replay_orphans_until(TimePoint until, bool final) {
  const Store& store = in_.store;
  for (; next_orphan_ < store.by_start.size(); ++next_orphan_) {
    const Index index = store.by_start[next_orphan_];
    const Operation& operation = store.operations[index];
    if (operation.start >= until) break;
    if (operation.replayed || operation.call != kNone) continue;
    if (!final && operation.end + kPatience > in_.ticked) continue;
    if (!queued_before_tracing(operation) && !unfinished_.contains(raw(operation.correlation)))
      ++in_.quality[Defect::kOrphan];
    replay_.replay_orphan(index);
    ++devices_[operation.device].operations;
  }
}

void Engine::Impl::count_call(const Call& call) {
  if (call.first_operation != kNone) {
    ++devices_[in_.store.operations[call.first_operation].device].launches;
    for (Index i = call.first_operation; i != kNone; i = in_.store.operations[i].next)
      ++devices_[in_.store.operations[i].device].operations;
    return;
  }
  if (!is_launch(call.api) || !lacks_operation(call, kTimeMax)) return;
  ++in_.quality[Defect::kNoOperation];
  const Index line = in_.ties.line_of(call.thread);
  for (Index device = 0; device < devices_.size(); ++device)
    if (in_.ties.line_in_chain(device, line)) ++devices_[device].missing;
}

void Engine::Impl::replay_until(TimePoint until, bool final) {
  const Store& store = in_.store;
  for (; next_call_ < store.calls.size(); ++next_call_) {
    const Call& call = store.calls[next_call_];
    if (call.start >= until && until != kTimeMax) break;
    replay_orphans_until(call.start, final);
    replay_.replay_call(static_cast<Index>(next_call_));
    count_call(call);
  }
  replay_orphans_until(until, final);
  frontier_ = std::max(frontier_, until);
  const std::uint64_t mismatches = replay_.mismatches();
  for (Followed& device : devices_) device.mismatches = mismatches;
}

// Of what ran while nothing was recorded nobody knows, so the first operation after it ends a window that
// cannot be told, though the host's iteration may have begun later.
bool Engine::Impl::reaches_into(const Hole& hole, Interval window) {
  return hole.reason == at(InvalidReason::kStoodAside) && hole.time.start < window.end && hole.time.end > window.start;
}

void Engine::Impl::count_defects(IterationLedger& ledger, const Followed& device, Index index,
                                 Interval window, TimePoint until) {
  for (const Defective& defect : in_.store.defects)
    if (defect.at < until && (defect.device == kNone || defect.device == index))
      ledger.invalid[defect.reason] += defect.count;
  for (const Hole& hole : in_.holes) {
    if (hole.time.start >= until) continue;  // what was launched before it has been recorded
    if (hole.time.end >= device.host_start || reaches_into(hole, window)) ledger.invalid[hole.reason] += hole.count;
  }
}

void Engine::Impl::end_part(Followed& device) {
  const auto index = static_cast<Index>(&device - devices_.data());
  PendingWindow window = device.ledger.end_host_iteration(replay_, in_.ties, in_.store);
  window.part = true;
  window.ledger.process = in_.process;
  window.ledger.device = device.ledger.id();
  window.ledger.launches = std::exchange(device.launches, 0);
  window.ledger.operations = std::exchange(device.operations, 0);
  window.ledger.invalid[at(InvalidReason::kLaunchesWithoutOperations)] +=
      std::exchange(device.missing, 0);
  if (const Index leader = in_.ties.leader_of(index); leader != kNone) {
    window.evidence = replay_.line(leader).evidence;
    window.ledger.own = replay_.line(leader).own;
  }
  device.ledger.push(std::move(window));
}

void Engine::Impl::end_iteration(Followed& device, const Boundary& boundary, bool gave_up,
                                 bool partial) {
  const auto index = static_cast<Index>(&device - devices_.data());
  PendingWindow window = device.ledger.end_host_iteration(replay_, in_.ties, in_.store);
  IterationLedger& ledger = window.ledger;
  ledger.process = in_.process;
  ledger.device = device.ledger.id();
  ledger.label = std::string(names_.text(boundary.label));
  ledger.opened_by = device.loop == kNone ? MarkSource::kWindow : in_.loops[device.loop].source();
  ledger.phase = device.loop == kNone   ? Phase::kWindow
                 : boundary.evaluation ? Phase::kEvaluation
                                       : Phase::kTrain;
  ledger.partial = partial || device.first || boundary.opening;
  ledger.launches = std::exchange(device.launches, 0);
  ledger.operations = std::exchange(device.operations, 0);
  const auto missing = std::exchange(device.missing, 0);
  ledger.invalid[at(gave_up ? InvalidReason::kMissingRecords
                            : InvalidReason::kLaunchesWithoutOperations)] += missing;
  count_defects(ledger, device, index, window.window, boundary.at);
  ledger.invalid[at(InvalidReason::kReplayMismatch)] += device.mismatches;
  if (device.host_start != kTimeMin && boundary.at != kTimeMax)
    ledger.host_step = boundary.at - device.host_start;
  if (const Index leader = in_.ties.leader_of(index); leader != kNone) {
    window.evidence = replay_.line(leader).evidence;
    ledger.own = replay_.line(leader).own;
  }
  // What came before the first iteration, or after the last, is one only if the device worked.
  const bool nothing = ledger.launches == 0 && ledger.operations == 0 && missing == 0;
  const bool skipped = nothing && ledger.partial && window.window.empty();
  ledger.index = boundary.index != kNoIndex ? boundary.index : device.count;
  if (!skipped) {
    device.count = ledger.index + (boundary.evaluation ? 0 : 1);
    device.ledger.push(std::move(window));
  }
  device.first = false;
  device.host_start = boundary.at;
}

void Engine::Impl::reset_lines(TimePoint until) {
  for (Index thread = 0; thread < in_.ties.threads(); ++thread) {
    if (in_.ties.line_of(thread) != thread) continue;
    HostLine& line = replay_.line(thread);
    line.evidence.clear();
    line.own = {};
  }
  std::erase_if(in_.store.defects, [&](const Defective& defect) { return defect.at < until; });
  std::erase_if(in_.holes, [&](const Hole& hole) { return is_past(hole, until); });
}

bool Engine::Impl::is_past(const Hole& hole, TimePoint until) const {
  if (hole.time.end >= until) return false;
  // Until each device has worked again, its next window begins before the hole.
  return hole.reason != at(InvalidReason::kStoodAside) || in_.holes.size() > kHolesKept ||
         std::ranges::all_of(devices_, [&](const Followed& device) {
           return !device.ledger.opened() || device.ledger.boundary() >= hole.time.end;
         });
}

bool Engine::Impl::may_close(const PendingWindow& window, Index device) const {
  const TimePoint end = window.window.end;
  if (in_.ticked >= end + kPatience) return true;
  if (in_.ticked < end) return false;
  // A launch that has no operation yet may have put one on another stream that reaches back here.
  std::size_t streams = 0;
  for (Index stream = 0; stream < in_.ties.streams(); ++stream)
    streams += in_.ties.stream_device(stream) == device ? 1 : 0;
  if (streams <= 1) return true;
  for (std::size_t i = next_call_; i < in_.store.calls.size(); ++i) {
    const Call& call = in_.store.calls[i];
    if (call.start >= end) break;
    if (lacks_operation(call, kBeforeAll)) return false;
  }
  return true;
}

void Engine::Impl::close_windows(bool force) {
  for (Index index = 0; index < devices_.size(); ++index) {
    DeviceLedger& device = devices_[index].ledger;
    while (!device.pending().empty()) {
      const PendingWindow& window = device.pending().front();
      const bool late = force || in_.ticked >= window.window.end + options_.give_up_after;
      if (!force && !may_close(window, index)) break;
      if (!device.close_front(replay_, in_.ties, in_.store, options_, names_, late)) break;
      if (!device.closed_part()) on_iteration_(device.finished());
    }
  }
}

// Cuts the host's time at the earliest boundary; false where there is none yet or it must wait.
bool Engine::Impl::cut_at(TimePoint cut, bool final) {
  const bool complete = final || complete_until(cut);
  const bool gave_up = !complete && cut + options_.give_up_after <= in_.ticked;
  if (!complete && !gave_up) return false;
  replay_until(cut, final);
  for (Followed& device : devices_) {
    const auto boundary = next_boundary(device.loop);
    if (boundary && boundary->at == cut) end_iteration(device, *boundary, gave_up, false);
  }
  for (Loop& loop : in_.loops)
    while (loop.next() != nullptr && loop.next()->at <= cut) loop.take();
  if (in_.loops.empty()) window_start_ = cut;
  reset_lines(cut);
  return true;
}

bool Engine::Impl::take_cuts(bool final) {
  bool any = false;
  for (;;) {
    std::optional<TimePoint> cut;
    for (const Followed& device : devices_)
      if (const auto next = next_boundary(device.loop); next && (!cut || next->at < *cut))
        cut = next->at;
    // With nothing on any device yet, marks pass unseen.
    if (!cut || (!final && *cut > in_.ticked)) return any;
    if (final && in_.loops.empty() && *cut > in_.last_start) return any;
    if (!cut_at(*cut, final)) return any;
    any = true;
    close_windows(false);
  }
}

// A very long iteration is charged in parts, so that memory stays bounded; what is complete goes.
void Engine::Impl::split_long_iteration() {
  const auto& calls = in_.store.calls;
  if (in_.store.pending() <= options_.pending_records_limit || in_.ticked == kBeforeAll) return;
  const bool forced = in_.store.pending() > 2 * options_.pending_records_limit;
  TimePoint cut = in_.ticked;
  for (std::size_t i = next_call_; i < calls.size() && calls[i].start < cut && !forced; ++i)
    if (lacks_operation(calls[i], kBeforeAll)) cut = calls[i].start;
  for (const Loop& loop : in_.loops)
    if (loop.next() != nullptr) cut = std::min(cut, loop.next()->at);
  if (next_call_ >= calls.size() || calls[next_call_].start >= cut) return;
  replay_until(cut, false);
  for (Followed& device : devices_) end_part(device);
  reset_lines(kTimeMin);
  close_windows(forced);
}

void Engine::Impl::compact() {
  Store& store = in_.store;
  TimePoint charged = frontier_;
  for (const Followed& device : devices_)
    charged = std::min(charged, std::max(device.ledger.charged_until(), frontier_ - kRemembered));
  for (Index thread = 0; thread < in_.ties.threads(); ++thread)
    if (in_.ties.line_of(thread) == thread) replay_.line(thread).log.forget_before(charged);
  for (Index thread = 0; thread < in_.labels.size(); ++thread) {
    // The silence after a line's last call is cut only when its next call comes.
    const TimePoint at = replay_.line(in_.ties.line_of(thread)).at;
    in_.labels[thread].forget_before(std::min(frontier_, std::max(at, frontier_ - kRemembered)));
  }
  for (Loop& loop : in_.loops) loop.compact();
  remember_unfinished();
  store.compact(
      static_cast<Index>(next_call_),
      [&](Index index) {
        const Operation& operation = store.operations[index];
        return operation.duplicate ||
               devices_[operation.device].ledger.retired(operation, frontier_);
      },
      [&](Index from, Index to) { replay_.moved(from, to); });
  late_before_ = std::max(late_before_, in_.ticked);
  next_call_ = next_orphan_ = 0;
}

void Engine::Impl::advance(bool final) {
  if (!final && !worth_preparing()) return;
  prepare();
  take_cuts(final);
  if (final) {
    replay_until(kTimeMax, true);
    for (Followed& device : devices_)
      end_iteration(device, {kTimeMax, kNoName, kNoIndex, false, false}, false, true);
    close_windows(true);
  } else {
    split_long_iteration();
    close_windows(false);
  }
  compact();
}

Engine::Engine(const EngineOptions& options, const NameTable& names, IterationCallback on_iteration)
    : impl_(std::make_unique<Impl>(options, names, std::move(on_iteration))) {}
Engine::~Engine() = default;
void Engine::add(const Record& record) { impl_->add(record); }
void Engine::finish() { impl_->finish(); }
const Quality& Engine::quality() const { return impl_->quality(); }

}  // namespace gpudiag
