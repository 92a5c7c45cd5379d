// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/recorder.hpp"

#include <time.h>

#include <algorithm>

#include "fmt/format.h"
#include "sources/cupti/buffer_callbacks.hpp"
#include "sources/cupti/cupti_load.hpp"
#include "sources/cupti/foreign_tools.hpp"
#include "sources/host/now.hpp"

namespace gpudiag {
namespace {

// A buffer that is sacrificed is counted by its bytes: API records have 40, kernels 200.
constexpr std::uint64_t kTypicalRecordBytes = 100;
// How often CUPTI is asked whether it has been left by the one to whom we conceded it.
constexpr DurationNs kFirstQuestion = seconds(5);
constexpr DurationNs kLongestWait = seconds(60);

bool read_cupti_clock(std::uint64_t& count, void* cupti) {
  const auto* table = static_cast<const CuptiTable*>(cupti);
  return table->timestamp != nullptr && table->timestamp(&count) == CUPTI_SUCCESS;
}

std::array<ClockSource, RecordClock::kSources> clock_sources(CuptiTable& cupti) {
  const auto machine = machine_clocks();
  return {ClockSource{"CUPTI's clock", read_cupti_clock, &cupti}, machine[0], machine[1], machine[2]};
}

void pause_for(DurationNs length) {
  const timespec t{length.ns / 1'000'000'000, length.ns % 1'000'000'000};
  nanosleep(&t, nullptr);
}

}  // namespace

ActivityRecorder::ActivityRecorder(NameTable& names)
    : names_{names}, clock_{clock_sources(cupti_), now, pause_for} {}

bool ActivityRecorder::start(const CuptiSettings& settings, bool aside) {
  if (state_ == State::kRecording || state_ == State::kAside) return true;
  settings_ = settings;
  conceded_ = false;
  if (aside) {
    state_ = State::kAside;
    return true;
  }
  return load() && begin();
}

bool ActivityRecorder::start_late() {
  if (state_ != State::kIdle || !no_driver_ || !driver_loaded()) return false;
  return load() && begin();
}

bool ActivityRecorder::load() {
  no_driver_ = !driver_present();
  if (no_driver_) return false;
  if (const std::string tool = foreign_tool(); !tool.empty()) {
    note("stood_aside", fmt::format("{} traces this process; standing aside, no ledger", tool));
    return false;
  }
  if (cupti_.complete()) return true;
  auto loaded = load_cupti(settings_.path);
  if (!loaded) {
    note("no_cupti", loaded.error().message);
    return false;
  }
  cupti_ = *loaded;
  pool_ = std::make_unique<BufferPool>(settings_.buffers);
  decoder_ = std::make_unique<ActivityDecoder>(cupti_, names_);
  set_buffer_pool(pool_.get());
  return true;
}

bool ActivityRecorder::begin() {
  registration_lost_ = false;
  decoder_->set_range_sink(settings_.markers ? take_range_ : nullptr);
  decoder_->forget_open_ranges();
  borrowed_.take(cupti_);
  clock_.restart();
  if (const CUptiResult result = register_buffer_callbacks(cupti_); result != CUPTI_SUCCESS) {
    note("no_records", fmt::format("CUPTI gives no records: {}", describe(cupti_, result)));
    return false;
  }
  if (!enable_all()) return false;
  if (clock_.map().empty()) clock_.restart();  // where CUPTI tells the time only once it is at work
  tell_clock();
  state_ = State::kRecording;
  return true;
}

bool ActivityRecorder::enable_all() {
  const ActivitySelection::Refused refused = selection_.enable_kinds(settings_.markers);
  if (refused.kernels) {
    note("no_records", fmt::format("CUPTI records no kernels: {}", refused.what));
    return false;
  }
  if (!refused.what.empty()) note("kinds_missing", fmt::format("CUPTI does not record {}", refused.what));
  selection_.find_functions(*decoder_);
  take_subscriber();
  if (!selection_.enable_functions(CUPTI_CB_DOMAIN_RUNTIME_API, subscriber_.taken()))
    note("kinds_missing", "CUPTI does not record runtime calls");
  if (settings_.driver_calls && !selection_.enable_functions(CUPTI_CB_DOMAIN_DRIVER_API, false))
    note("kinds_missing", "CUPTI does not record driver calls");
  return true;
}

void ActivityRecorder::take_subscriber() {
  const bool wanted = settings_.callbacks == CallbackMode::kOn ||
                      (settings_.callbacks == CallbackMode::kAuto && !torch_loaded());
  if (!wanted || selection_.slow_functions().empty()) return;
  std::string why_not;
  if (subscriber_.take(cupti_, selection_.slow_functions(), why_not) != CUPTI_SUCCESS)
    note("callbacks_off", fmt::format("callbacks off: {}; the ledger does without", why_not));
}

void ActivityRecorder::yield_subscriber() {
  if (settings_.callbacks != CallbackMode::kAuto || !subscriber_.taken() || !torch_loaded()) return;
  subscriber_.release(cupti_);
  selection_.without_subscriber();
  note("callbacks_off", "callbacks off: torch has been loaded, whose profiler may want CUPTI's only subscriber");
}

void ActivityRecorder::poll(RecordSink& sink, bool flush) {
  if (pool_ == nullptr || state_ == State::kIdle || state_ == State::kAside) return;
  if (flush) {
    if (state_ == State::kRecording) yield_subscriber();
    registration_lost_ = cupti_.flush_all(0) == CUPTI_ERROR_INVALID_OPERATION;
  }
  decode_filled(sink);
  if (flush) report_losses(sink);
}

void ActivityRecorder::decode_filled(RecordSink& sink) {
  const auto buffers = pool_->filled();
  if (buffers.empty() && clock_.map().empty()) return;
  // After the buffers were taken, so that no time in them lies beyond the newest anchor.
  if (clock_.advance()) {
    ++clocks_exchanged_;
    tell_clock();
  }
  settle_clock(buffers);
  if (const std::uint64_t unloaded = CallbackSubscriber::modules_unloaded(); unloaded != modules_unloaded_) {
    modules_unloaded_ = unloaded;
    decoder_->forget_names();
  }
  for (const BufferPool::Filled& buffer : buffers) {
    if (!decoder_->decode(buffer, clock_.map(), sink)) {
      if (!std::exchange(told_unreadable_, true))
        note("unreadable_buffer", "CUPTI cannot read records that it wrote; they are counted as lost");
      emit_lost(1, sink);  // at the least
    }
    pool_->recycle(buffer);
  }
  decoder_->finish_round(sink);
}

void ActivityRecorder::settle_clock(const std::vector<BufferPool::Filled>& buffers) {
  for (const BufferPool::Filled& buffer : buffers) {
    if (clock_.settled()) return;
    clock_.settle(decoder_->first_call_time(buffer));
    if (!clock_.settled()) continue;
    if (clock_.lost())
      note("foreign_clock", "CUPTI's records come in a clock that cannot be found: there is no ledger of them");
    else if (clock_.name() != std::string_view{"CUPTI's clock"})
      note("clock", fmt::format("CUPTI's records come in {}, whatever it says of its clock; converted", clock_.name()),
           false);
  }
}

void ActivityRecorder::tell_clock() {
  if (!clock_.counts_ns())
    note("clock", "CUPTI's records do not come in nanoseconds: another profiler has given it a clock; converted", false);
}

void ActivityRecorder::report_losses(RecordSink& sink) {
  std::size_t dropped = 0;
  if (cupti_.dropped_records != nullptr && cupti_.dropped_records(nullptr, 0, &dropped) != CUPTI_SUCCESS) dropped = 0;
  const std::uint64_t lost = dropped + pool_->take_sacrificed_bytes() / kTypicalRecordBytes;
  if (lost != 0) emit_lost(lost, sink);
}

void ActivityRecorder::emit_lost(std::uint64_t count, RecordSink& sink) {
  Record record;
  record.kind = RecordKind::kLost;
  record.start = record.end = now();
  record.value = count;
  sink.add(record);
}

void ActivityRecorder::stop() {
  if (state_ == State::kRecording) {
    selection_.disable_all();
    subscriber_.release(cupti_);
    borrowed_.give_back(cupti_);
    state_ = State::kDraining;
  } else if (state_ == State::kAside) {
    state_ = State::kIdle;  // what is enabled is not ours
  }
}

void ActivityRecorder::force_out(RecordSink& sink) {
  if (pool_ == nullptr || state_ != State::kDraining) return;
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  decode_filled(sink);
  decoder_->finish_round(sink);  // those that still wait have had their round
  report_losses(sink);
  const std::size_t missing = pool_->held();
  if (missing == 0) return;
  note("buffers_missing", fmt::format("{} buffers of records never came back: another profiler took them, or the "
                                      "driver kept them", missing));
  emit_lost(missing, sink);  // at the least
}

void ActivityRecorder::hand_over() {
  if (pool_ != nullptr) pool_->abandon_held();
  conceded_ = false;
  state_ = State::kAside;
}

void ActivityRecorder::concede() {
  if (state_ != State::kRecording) return;
  pool_->abandon_held();
  conceded_ = true;
  taken_before_ = pool_->taken();
  ask_after_ = kFirstQuestion;
  ask_at_ = now() + ask_after_;
  state_ = State::kAside;
}

bool ActivityRecorder::may_resume(TimePoint at) {
  if (state_ != State::kAside || !conceded_) return false;
  if (registration_lost_ || pool_->taken() != taken_before_) return true;
  if (at < ask_at_) return false;
  ask_after_ = std::min(ask_after_ + ask_after_, kLongestWait);
  ask_at_ = at + ask_after_;
  // A flush is all that it takes to know: it cannot take anything from whoever is registered.
  registration_lost_ = cupti_.flush_all(0) == CUPTI_ERROR_INVALID_OPERATION;
  return registration_lost_;
}

bool ActivityRecorder::resume() {
  if (state_ != State::kAside) return state_ == State::kRecording;
  state_ = State::kIdle;
  return load() && begin();
}

}  // namespace gpudiag
