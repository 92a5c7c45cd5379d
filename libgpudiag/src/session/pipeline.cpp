// SPDX-License-Identifier: Apache-2.0
#include "session/pipeline.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

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
// Ten iterations that the job itself marks, and not one CUDA call in five seconds: the records go to
// somebody else. Ranges do not count: an evaluation on the processor has them too.
constexpr DurationNs kStolenAfter = seconds(5);
constexpr std::uint64_t kStolenMarks = 10;

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
      engine_{engine_options(settings), names,
              [this](const IterationLedger& ledger) { outputs_.iteration(ledger, now()); }},
      budget_{settings.budget_percent, processors()},
      started_{started},
      last_quality_{started},
      at_start_{source.counts()} {
  if (!outputs_.recording()) return;
  recording_ = std::make_unique<RecordingWriter>(
      names, [this](std::string_view bytes) { return outputs_.record(bytes); });
  recording_->attribute("origin_unix_ns", fmt::format("{}", info.origin_unix_ns));
  recording_->attribute("rank", fmt::format("{}", info.rank));
  recording_->attribute("host", info.host);
  recording_->attribute("pid", fmt::format("{}", info.pid));
  recording_->attribute("source", info.source);
  recording_->attribute("version", info.version);
  for (const auto& [name, text] : info.options) recording_->attribute("option." + name, text);
}

void Pipeline::Intake::add(const Record& record) {
  if (record.kind == RecordKind::kOwn && record.end > record.start) pipeline_.own_ += record.end - record.start;
  if (record.is_operation()) pipeline_.meet_device(record.device);
  pipeline_.sanitizer_.add(record);
}

void Pipeline::Fork::add(const Record& record) {
  if (pipeline_.recording_) pipeline_.recording_->add(record);
  pipeline_.engine_.add(record);
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
  sanitizer_.set_session({started_ - kForeignMargin, asked + kForeignMargin});
  drain_logs();
  source_.poll(intake_, flush);
  if (flush) {
    tick(source_.delivered_until(asked));
    check_self(asked);
    check_budget(asked);
    take_notes();
  }
  outputs_.poll(now());
  if (recording_ && flush) recording_->flush();
  outputs_.flush();
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
  if (message.end < started_) return;  // before the session: NVTX is listened to from its first call on
  if (message.kind == RecordKind::kApiCall) {
    intake_.add(source_.call_record(message));
    return;
  }
  if (message.kind == RecordKind::kMark) ++marks_since_record_;
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
  }
  intake_.add(record);
}

void Pipeline::report_lost(std::uint64_t count) {
  Record record;
  record.kind = RecordKind::kLost;
  record.start = record.end = now();
  record.value = count;
  intake_.add(record);
}

void Pipeline::tick(TimePoint asked) {
  Record record;
  record.kind = RecordKind::kTick;
  record.start = record.end = asked;
  intake_.add(record);
}

void Pipeline::check_self(TimePoint at) {
  const CuptiCounts counts = source_.counts();
  check_stolen(at, counts);
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

void Pipeline::check_stolen(TimePoint at, const CuptiCounts& counts) {
  const std::uint64_t records = counts.calls + counts.operations;
  if (records != records_seen_ || last_record_seen_ == TimePoint{}) {
    records_seen_ = records;
    last_record_seen_ = at;
    marks_since_record_ = 0;
    return;
  }
  const bool had_some = records > at_start_.calls + at_start_.operations;
  if (told_stolen_ || !had_some || marks_since_record_ < kStolenMarks || at - last_record_seen_ < kStolenAfter)
    return;
  told_stolen_ = true;
  outputs_.note({at, "records_stopped",
                 "no records from CUPTI any more while the job goes on: another profiler has taken its buffers, it "
                 "seems; there is no ledger from here on"},
                true);
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
  for (const SourceNote& source_note : source_.take_notes()) note(source_note.code, source_note.text, true);
  const TimePoint at = now();
  if (at - last_quality_ < kQualityPeriod) return;
  last_quality_ = at;
  outputs_.quality(at, engine_.quality());
}

void Pipeline::note(const std::string& code, const std::string& text, bool tell) {
  outputs_.note({now(), code, text}, tell);
}

void Pipeline::finish(TimePoint deadline) {
  // Long enough for a kernel or two to end; a job that exits does not wait for its GPU either.
  constexpr DurationNs kPatience = milliseconds(200);
  const TimePoint until = std::min(deadline, now() + kPatience);
  source_.stop();
  round(true);
  while (!source_.done() && now() < until) {
    usleep(2000);
    round(true);
  }
  source_.force_out(intake_);
  drain_logs();
  tick(now());
  take_notes();
  engine_.finish();
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
