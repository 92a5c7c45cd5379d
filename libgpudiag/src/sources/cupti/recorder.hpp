// SPDX-License-Identifier: Apache-2.0
// Flow: [sources] -> record -> timeline -> attribution -> report.
// What CuptiSource hides: CUPTI loaded, recording, aside, and the decoding of what it gives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sources/cupti/borrowed_settings.hpp"
#include "sources/cupti/buffer_pool.hpp"
#include "sources/cupti/callbacks.hpp"
#include "sources/cupti/decode.hpp"
#include "sources/cupti/record_clock.hpp"
#include "sources/cupti/selection.hpp"
#include "sources/cupti/source.hpp"

namespace gpudiag {

/// CUPTI at work for us: the states of CuptiSource, whose comments say what each function does. Drain
/// thread. Must live for ever.
class ActivityRecorder {
 public:
  explicit ActivityRecorder(NameTable& names);

  bool start(const CuptiSettings& settings, bool aside);
  bool start_late();
  void poll(RecordSink& sink, bool flush);
  void stop();
  void force_out(RecordSink& sink);
  void hand_over();
  void concede();
  bool may_resume(TimePoint at);
  bool resume();

  void note(std::string code, std::string text, bool tell = true) {
    notes_.push_back({std::move(code), std::move(text), tell});
  }

  enum class State : std::uint8_t { kIdle, kRecording, kDraining, kAside };

  // Read by CuptiSource as well.
  NameTable& names_;
  CuptiTable cupti_;
  CuptiSettings settings_;
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<ActivityDecoder> decoder_;
  ActivitySelection selection_{cupti_};
  RecordClock clock_;
  std::function<void(const HostMessage&, std::string_view)> take_range_;
  std::vector<SourceNote> notes_;
  State state_ = State::kIdle;
  bool registration_lost_ = false;
  std::uint64_t clocks_exchanged_ = 0;

 private:
  bool load();
  bool begin();
  bool enable_all();
  void take_subscriber();
  void yield_subscriber();
  void decode_filled(RecordSink& sink);
  void settle_clock(const std::vector<BufferPool::Filled>& buffers);
  void tell_clock();
  void report_losses(RecordSink& sink);
  void emit_lost(std::uint64_t count, RecordSink& sink);

  CallbackSubscriber subscriber_;
  BorrowedSettings borrowed_;
  bool conceded_ = false;
  bool no_driver_ = false;
  std::uint64_t taken_before_ = 0;
  TimePoint ask_at_;
  DurationNs ask_after_;
  bool told_unreadable_ = false;
  std::uint64_t modules_unloaded_ = 0;
};

}  // namespace gpudiag
