// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/source.hpp"

#include <algorithm>
#include <utility>

#include "sources/cupti/recorder.hpp"

namespace gpudiag {

CuptiSource::CuptiSource(NameTable& names) : recorder_{std::make_unique<ActivityRecorder>(names)} {}
CuptiSource::~CuptiSource() = default;

bool CuptiSource::start(const CuptiSettings& settings, bool aside) { return recorder_->start(settings, aside); }
bool CuptiSource::start_late() { return recorder_->start_late(); }
bool CuptiSource::active() const { return recorder_->state_ == ActivityRecorder::State::kRecording; }
bool CuptiSource::aside() const { return recorder_->state_ == ActivityRecorder::State::kAside; }
bool CuptiSource::registration_lost() const { return active() && recorder_->registration_lost_; }
void CuptiSource::poll(RecordSink& sink, bool flush) { recorder_->poll(sink, flush); }
void CuptiSource::stop() { recorder_->stop(); }
void CuptiSource::force_out(RecordSink& sink) { recorder_->force_out(sink); }
void CuptiSource::hand_over() { recorder_->hand_over(); }
void CuptiSource::concede() { recorder_->concede(); }
bool CuptiSource::may_resume(TimePoint at) { return recorder_->may_resume(at); }
bool CuptiSource::resume() { return recorder_->resume(); }
std::uint64_t CuptiSource::clocks_exchanged() const { return recorder_->clocks_exchanged_; }

void CuptiSource::set_range_sink(std::function<void(const HostMessage&, std::string_view)> take) {
  recorder_->take_range_ = std::move(take);
  if (recorder_->decoder_ != nullptr && recorder_->settings_.markers) recorder_->decoder_->set_range_sink(recorder_->take_range_);
}
void CuptiSource::drop_markers() {
  if (!std::exchange(recorder_->settings_.markers, false)) return;
  if (active()) recorder_->selection_.disable_markers();
  if (recorder_->decoder_ != nullptr) recorder_->decoder_->set_range_sink(nullptr);
}
void CuptiSource::drop_driver_calls() {
  if (std::exchange(recorder_->settings_.driver_calls, false) && active()) recorder_->selection_.disable_driver_calls();
}

bool CuptiSource::done() const { return recorder_->pool_ == nullptr || recorder_->pool_->held() == 0; }
bool CuptiSource::backlog() const {
  return recorder_->pool_ != nullptr && recorder_->pool_->waiting() * 4 > recorder_->pool_->limit();
}
TimePoint CuptiSource::delivered_until(TimePoint asked) const {
  if (recorder_->pool_ == nullptr) return asked;
  const TimePoint oldest = recorder_->pool_->oldest_held();
  if (oldest == kTimeMax) return asked;
  // An operation's record is written some time after it ended, into a buffer that was taken then.
  constexpr DurationNs kWritten = milliseconds(100);
  constexpr DurationNs kPatience = seconds(5);
  return std::max(std::min(asked, oldest - kWritten), asked - kPatience);
}
std::vector<SourceNote> CuptiSource::take_notes() { return std::exchange(recorder_->notes_, {}); }

Record CuptiSource::call_record(const HostMessage& message) {
  Record record;
  record.kind = RecordKind::kApiCall;
  record.start = message.start;
  record.end = message.end;
  record.thread = ThreadId{message.thread};
  record.correlation = CorrelationId{message.correlation};
  record.flags = message.flags;
  if (recorder_->decoder_ == nullptr) return record;
  const bool runtime = (message.callback & kRuntimeCallbackBit) != 0;
  const auto& function = recorder_->decoder_->function(
      runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, message.callback & ~kRuntimeCallbackBit);
  record.name = function.name;
  record.api = function.traits.api;
  record.flags |= function.traits.flags;
  recorder_->decoder_->note_call(record);
  return record;
}

CuptiCounts CuptiSource::counts() const {
  CuptiCounts counts;
  if (recorder_->decoder_ == nullptr) return counts;
  const DecodedCounts& decoded = recorder_->decoder_->counts();
  counts.calls = decoded.calls;
  counts.launches = decoded.launches;
  counts.operations = decoded.operations;
  counts.buffers_made = recorder_->pool_->made();
  counts.buffers_asked = recorder_->pool_->taken();
  counts.clock_steps = recorder_->clock_.steps();
  return counts;
}

}  // namespace gpudiag
