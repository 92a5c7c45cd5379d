// SPDX-License-Identifier: Apache-2.0
#include "session/pipeline.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "attribution/host_timeline.hpp"
#include "fmt/format.h"
#include "sources/host/now.hpp"
#include "sources/nvtx/nvtx_source.hpp"

namespace gpudiag {
namespace {

// A quarter of what one thread's log holds.
constexpr std::size_t kQuietMessages = 300;

// A record beyond these cannot be of this session's clock.
constexpr DurationNs kForeignMargin = seconds(1);
constexpr DurationNs kQualityPeriod = seconds(5);
// Records of launches come within a flush or two; after this time without one operation something
// keeps them from us.
constexpr DurationNs kOperationsDue = seconds(2);
// Long enough for a kernel or two to end; a job that exits does not wait for its GPU either.
constexpr DurationNs kExitPatience = milliseconds(200);
// The other profiler's start takes as long, and what comes late would come to it.
constexpr DurationNs kHandOverPatience = milliseconds(300);
// A CUPTI that forgets us at once, again and again, is left alone.
constexpr int kLostRegistrations = 5;

DurationNs thread_cpu_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return {std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec};
}

unsigned processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

/// The driver's name for a device; empty where it does not tell.
std::string device_name(DeviceId device) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return {};
  using Get = int (*)(int*, int);
  using GetName = int (*)(char*, int, int);
  const auto get = reinterpret_cast<Get>(dlsym(driver, "cuDeviceGet"));
  const auto get_name = reinterpret_cast<GetName>(dlsym(driver, "cuDeviceGetName"));
  int handle = 0;
  char name[128] = {};
  if (get == nullptr || get_name == nullptr || get(&handle, static_cast<int>(raw(device))) != 0 ||
      get_name(name, sizeof name - 1, handle) != 0)
    return {};
  return name;
}

EngineOptions engine_options(const Settings& settings) {
  EngineOptions options;
  options.range_rules = settings.ranges;
  options.iteration_pattern = settings.iteration;
  options.launch_pattern = settings.pattern;
  return options;
}

}  // namespace

Pipeline::Pipeline(const Settings& settings, const SessionInfo& info, NameTable& names, CuptiSource& source,
                   LatestIteration& latest, TimePoint started)
    : names_{names},
      source_{source},
      live_names_{names, !settings.record},
      outputs_{settings, info, latest},
      info_{info},
      ranges_{settings.ranges, settings.iteration, names},
      collectives_{names},
      own_view_{view_of(static_cast<std::uint32_t>(info.pid))},
      engine_{engine_options(settings), names,
              [this](const IterationLedger& ledger) { take_iteration(ledger); }},
      nccl_{fork_, names, [this](std::string_view text) { return live_names_.intern(text); }},
      watcher_{intake_, [this](std::string_view text) { return live_names_.intern(text); }, started},
      watching_{settings.watch},
      budget_{settings.budget_percent, processors()},
      started_{started},
      last_quality_{started},
      ticked_{started},
      clocks_exchanged_{source.clocks_exchanged()},
      at_start_{source.counts()} {
  source_.set_range_sink([this](const HostMessage& message, std::string_view text) {
    if (nvtx_instances() == 0) take_message(message, text);
  });
  if (auto who = identity_of_launcher(environment_variable, info.rank)) {
    who->pid = info.pid;
    who->host = info.host;
    who->origin_unix_ns = info.origin_unix_ns;
    who->version = info.version;
    who->source = info.source;
    outputs_.begin_summary(*who);
    if (settings.peers_wanted) peers_ = std::make_unique<Peers>(settings, *std::move(who));
  }
  if (!outputs_.recording()) return;
  recording_ = std::make_unique<RecordingWriter>(
      names, [this](std::string_view bytes) { return outputs_.record(bytes); });
  recording_->attribute("origin_unix_ns", fmt::format("{}", info.origin_unix_ns));
  recording_->attribute("rank", fmt::format("{}", info.rank));
  recording_->attribute("host", info.host);
  recording_->attribute("pid", fmt::format("{}", info.pid));
  recording_->attribute("source", info.source);
  recording_->attribute("version", info.version);
  recording_->attribute("torch", info.torch ? "true" : "false");
  if (const auto who = identity_of_launcher(environment_variable, info.rank)) {
    recording_->attribute("world_size", fmt::format("{}", who->world_size));
    recording_->attribute("job", who->job);
    recording_->attribute("restart", fmt::format("{}", who->restart));
  }
  for (const auto& [name, text] : info.options) recording_->attribute("option." + name, text);
}

void Pipeline::Intake::add(const Record& record) {
  if (record.kind == RecordKind::kOwn && record.end > record.start) pipeline_.own_ += record.end - record.start;
  if (record.is_operation()) pipeline_.meet_device(record.device);
  if (record.kind == RecordKind::kApiCall) pipeline_.watcher_.call(record.thread, record.interval());
  // Beside hundreds of threads a round may take longer than the margin, and what comes last in it is of
  // after it began.
  if (record.end > pipeline_.believed_until_) pipeline_.believe_until(now());
  pipeline_.sanitizer_.add(record);
}

void Pipeline::Fork::add(const Record& record) {
  if (pipeline_.recording_) pipeline_.recording_->add(record);
  if (pipeline_.peers_ || pipeline_.outputs_.summarizing()) pipeline_.collectives_.add(record);
  pipeline_.engine_.add(record);
}

void Pipeline::take_iteration(const IterationLedger& ledger) {
  const TimePoint at = now();
  outputs_.iteration(ledger, at);
  watcher_.iteration(ledger, at);
  if (!peers_ && !outputs_.summarizing()) return;
  const auto uses = collectives_.take(ledger.device, {ledger.start, ledger.start + ledger.wall});
  outputs_.summary(ledger, uses, collectives_.abouts());
  if (peers_) tail_.add(ledger, uses, collectives_.abouts());
}

// What the main thread is in: a range of the job's or of a hook's; else the call that holds it up.
PeerState Pipeline::peer_state(TimePoint at) {
  PeerState state;
  state.summary = tail_.summary();
  const auto main_thread = static_cast<std::uint32_t>(info_.pid);
  if (const auto open = ThreadLogs::open_now(main_thread)) {
    state.doing = open->text;
    state.doing_for = std::max(DurationNs{}, at - open->start);
    held_.clear();
  } else {
    const ThreadLook look = looker_.look_at_thread(main_thread, own_view_);
    const std::string_view held = look.held.state == HostState::kReady ? std::string_view{} : look.held.name;
    if (held != held_) held_since_ = at;
    held_ = held;
    state.doing = held_;
    state.doing_for = at - held_since_;
  }
  for (const NcclProgress& progress : nccl_.progress()) {
    GroupProgress group;
    group.group = fmt::format("nccl:{:016x}", progress.communicator);
    for (const CollectiveKind kind : progress.newest) group.newest += kind_letter(kind);
    group.group_size = progress.ranks;
    group.rank_in_group = progress.rank;
    group.called = progress.called;
    if (progress.waiting_since != kTimeMax) group.waiting = std::max(DurationNs{}, at - progress.waiting_since);
    state.groups.push_back(std::move(group));
  }
  return state;
}

void Pipeline::meet_peers(TimePoint at) {
  if (!peers_) return;
  for (const PeerLine& line : peers_->tick(at, [&] { return peer_state(at); })) {
    if (line.again) outputs_.say(line.text);
    else note(line.code, line.text, true);
  }
}

void Pipeline::meet_device(DeviceId device) {
  if (std::ranges::find(devices_, device) != devices_.end()) return;
  devices_.push_back(device);
  const DeviceInfo met{device, device_name(device)};
  outputs_.device(met);
  if (recording_) recording_->attribute(fmt::format("device.{}", raw(device)), met.name);
}

void Pipeline::round(bool flush) {
  const TimePoint asked = now();
  believe_until(asked);
  drain_logs();
  source_.poll(intake_, flush);
  if (flush) {
    source_.start_late();
    check_taken(asked);
    emit_gap(asked);
    watcher_.tick(asked);
    tick(std::min(source_.delivered_until(asked), watch_.trusted_until()));
    check_self(asked);
    check_budget(asked);
    take_notes();
    meet_peers(asked);
  }
  outputs_.poll(now());
  if (recording_ && flush) recording_->flush();
  outputs_.flush();
}

void Pipeline::look() {
  if (!watching_ || aside_.open()) return;
  const TimePoint at = now();
  if (at < watcher_.due()) return;
  believe_until(at);
  watcher_.look(at);
}

void Pipeline::believe_until(TimePoint at) {
  believed_until_ = at + kForeignMargin;
  sanitizer_.set_session({started_ - kForeignMargin, believed_until_});
}

void Pipeline::drain_logs() {
  std::size_t messages = 0;
  ThreadLogs::drain([&](const HostMessage& message, std::string_view text) {
    ++messages;
    take_message(message, text);
  });
  logs_busy_ = messages > kQuietMessages;
  if (const std::uint64_t lost = ThreadLogs::take_lost(); lost != 0) report_lost(lost);
}

void Pipeline::take_message(const HostMessage& message, std::string_view text) {
  // Before the session only NVTX and NCCL are listened to; which communicators there are must be known.
  if (message.content == HostMessage::Content::kNcclCall) return take_nccl_call(message, text);
  if (message.end < started_) return;
  if (message.kind == RecordKind::kApiCall) {
    intake_.add(source_.call_record(message));
    return;
  }
  if (message.kind == RecordKind::kMark) watch_.mark();
  Record record;
  record.kind = message.kind;
  record.start = std::max(message.start, started_);
  record.end = message.end;
  record.thread = ThreadId{message.thread};
  record.value = message.value;
  record.range = message.range;
  record.mark = message.mark;
  record.flags = message.flags;
  record.cause = message.cause;
  if (message.kind == RecordKind::kRange) {
    if (drop_ranges_ && message.range == RangeSource::kNvtx) return;
    record.name = live_names_.intern(text);
    if (record.end - record.start > kReadyBatch) watch_if_wait(record, text);
  }
  intake_.add(record);
}

void Pipeline::take_nccl_call(const HostMessage& message, std::string_view bytes) {
  NcclCall call;
  if (bytes.size() != sizeof call) return;
  std::memcpy(&call, bytes.data(), sizeof call);
  nccl_.call(call, ThreadId{message.thread}, message.start);
}

// A long wait for a batch means that the batch was late, unless the thread only had to wait for a
// processor: from the second one on that is found out.
void Pipeline::watch_if_wait(const Record& range, std::string_view text) {
  const RangeLabel label = ranges_.label_of(range);
  if (label.cause == Cause::kDataLoading && label.mode == BatchMode::kWait) watch_wait(text);
}

void Pipeline::report_lost(std::uint64_t count) {
  Record record;
  record.kind = RecordKind::kLost;
  record.start = record.end = now();
  record.value = count;
  intake_.add(record);
}

void Pipeline::tick(TimePoint asked) {
  ticked_ = std::max(ticked_, asked);
  Record record;
  record.kind = RecordKind::kTick;
  record.start = record.end = asked;
  intake_.add(record);
}

void Pipeline::check_self(TimePoint at) {
  const CuptiCounts counts = source_.counts();
  const std::uint64_t launches = counts.launches - at_start_.launches;
  const std::uint64_t operations = counts.operations - at_start_.operations;
  if (launches > 0 && first_launch_seen_ == TimePoint{}) {
    first_launch_seen_ = at;
    outputs_.used();
  }
  if (operations > 0 && !told_recording_) {
    told_recording_ = true;
    outputs_.note({at, "recording", fmt::format("recording: {} launches and {} GPU operations so far{}", launches,
                                                operations, nvtx_instances() > 0 ? ", NVTX heard" : "")},
                  true);
  }
  if (launches == 0 || operations > 0 || told_no_operations_ || at - first_launch_seen_ < kOperationsDue) return;
  told_no_operations_ = true;
  outputs_.note({at, "no_gpu_activity",
                 fmt::format("no GPU activity from CUPTI: {} launches and not one operation (WSL, or a driver that "
                             "lacks tracing?); there will be no ledger",
                             launches)},
                true);
}

// Somebody else has CUPTI's buffers, or has let go of them.
void Pipeline::check_taken(TimePoint at) {
  if (nvtx_instances() > 0) source_.drop_markers();
  if (aside_.open()) {
    if (!aside_.asked_for() && source_.may_resume(at)) resume();
    return;
  }
  const CuptiCounts counts = source_.counts();
  const auto signs = [](const CuptiCounts& of) { return of.calls + of.operations + of.buffers_asked; };
  const std::uint64_t records = signs(counts) - signs(at_start_);
  if (source_.clocks_exchanged() != std::exchange(clocks_exchanged_, source_.clocks_exchanged()))
    watch_.clock_exchanged();
  if (records != std::exchange(records_seen_, records)) lost_registrations_ = 0;
  const bool gone = watch_.update(at, records);
  if (source_.registration_lost()) {
    if (lost_registrations_ == kLostRegistrations)
      note("no_records", "CUPTI forgets again and again that records are to come to us; not asking any more", true);
    if (lost_registrations_++ >= kLostRegistrations) return;
    concede("a profiler that has detached CUPTI");
    return resume();
  }
  if (!gone) return;
  concede(kSomebody);
  note("records_stopped",
       "no records from CUPTI any more while the job goes on: another profiler has taken its buffers, it seems; "
       "standing aside until it is known to have ended (docs/beside-other-profilers.md)",
       true);
}

void Pipeline::concede(std::string_view who) {
  // Up to the last tick everything had come.
  aside_.begin(ticked_, who, false);
  source_.concede();
}

void Pipeline::emit_gap(TimePoint until) {
  const Interval piece = aside_.take_piece(until);
  if (piece.empty()) return;
  Record record;
  record.kind = RecordKind::kGap;
  record.gap = GapReason::kStoodAside;
  record.start = piece.start;
  record.end = piece.end;
  intake_.add(record);
}

void Pipeline::drain_source(TimePoint until) {
  source_.stop();
  round(true);
  while (!source_.done() && now() < until) {
    usleep(2000);
    round(true);
  }
  source_.force_out(intake_);
}

void Pipeline::stand_aside(std::string_view who) {
  const TimePoint from = now();
  const bool recording = source_.active();
  if (!recording && !source_.aside()) return;  // no GPU here: nothing to hand over
  aside_.begin(from, who, true);
  if (recording) drain_source(from + kHandOverPatience);
  source_.hand_over();
  watch_.reset();
  note("standing_aside", fmt::format("standing aside for {}", aside_.who()), false);
}

void Pipeline::resume_unasked() {
  if (!aside_.open() && source_.active()) concede(kSomebody);  // it was not noticed
  resume();
}

void Pipeline::resume() {
  if (!aside_.open()) return;
  if (!source_.resume()) return take_notes();  // they say why; the gap goes on
  const TimePoint at = now();
  emit_gap(at);
  watch_.reset();
  note("stood_aside", say_stood_aside(aside_.who(), aside_.end(at)), true);
}

void Pipeline::check_budget(TimePoint at) {
  switch (budget_.update(at, own_, thread_cpu_time())) {
    case Budget::Step::kNone: return;
    case Budget::Step::kDropDriverCalls:
      source_.drop_driver_calls();
      return note("shed", fmt::format("own cost {:.1f} % is over budget: driver calls are not recorded any more",
                                      budget_.last_share() * 100), true);
    case Budget::Step::kDropRanges:
      drop_ranges_ = true;
      return note("shed", fmt::format("own cost {:.1f} % is over budget: NVTX ranges are not recorded any more",
                                      budget_.last_share() * 100), true);
    case Budget::Step::kNothingLeft:
      return note("over_budget", fmt::format("own cost {:.1f} % is over budget and nothing is left to shed",
                                             budget_.last_share() * 100), true);
  }
}

void Pipeline::take_notes() {
  const PatternState pattern = engine_.pattern();
  if (pattern.stage != pattern_told_) {
    pattern_told_ = pattern.stage;
    note("launch_pattern", describe(pattern), true);
  }
  for (const SourceNote& source_note : source_.take_notes())
    note(source_note.code, source_note.text, source_note.tell);
  const TimePoint at = now();
  if (at - last_quality_ < kQualityPeriod) return;
  last_quality_ = at;
  outputs_.quality(at, engine_.quality());
}

void Pipeline::note(const std::string& code, const std::string& text, bool tell) {
  outputs_.note({now(), code, text}, tell);
}

void Pipeline::finish(TimePoint deadline) {
  drain_source(std::min(deadline, now() + kExitPatience));
  drain_logs();
  if (aside_.open()) {
    emit_gap(now());
    note("stood_aside", say_stood_aside(aside_.who(), aside_.end(now())), true);
  }
  tick(now());
  nccl_.flush();
  take_notes();
  engine_.finish();
  take_notes();
  if (peers_) peers_->leave(now(), peer_state(now()));
  if (recording_) recording_->finish();
  SessionEnd end;
  end.at = now();
  end.iterations = outputs_.iterations();
  end.quality = engine_.quality();
  end.own = own_;
  end.own_drain = thread_cpu_time();
  outputs_.end(end);
}

}  // namespace gpudiag
