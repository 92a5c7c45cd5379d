// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/source.hpp"

#include <array>
#include <utility>

#include "fmt/format.h"
#include "record/clock.hpp"
#include "sources/cupti/buffer_pool.hpp"
#include "sources/cupti/callbacks.hpp"
#include "sources/cupti/cupti_load.hpp"
#include "sources/cupti/decode.hpp"
#include "sources/cupti/foreign_tools.hpp"
#include "sources/host/now.hpp"

namespace gpudiag {
namespace {

// CONCURRENT_KERNEL and not KERNEL, which would make kernels wait for each other. RUNTIME and DRIVER
// are switched on function by function.
constexpr std::array kKinds{
    std::pair{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL"},
    std::pair{CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY"},
    std::pair{CUPTI_ACTIVITY_KIND_MEMCPY2, "MEMCPY2"},
    std::pair{CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET"},
    std::pair{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "SYNCHRONIZATION"},
    std::pair{CUPTI_ACTIVITY_KIND_CUDA_EVENT, "CUDA_EVENT"},
    std::pair{CUPTI_ACTIVITY_KIND_OVERHEAD, "OVERHEAD"},
};

// Ids are dense with few holes; this many unknown ones in a row are the end.
constexpr std::uint32_t kCallbackHole = 64;
// A buffer that is sacrificed is counted by its bytes: API records have 40, kernels 200.
constexpr std::uint64_t kTypicalRecordBytes = 100;

// The one trampoline: CUPTI's buffer callbacks carry no user pointer. release and acquire: the pool
// is whole before CUPTI sees it.
std::atomic<BufferPool*> g_pool{nullptr};
// For the moment when no memory can be had at all: null would crash older CUPTIs, and what is written
// here is never read.
alignas(64) std::uint8_t g_last_resort[kActivityBufferBytes];

void CUPTIAPI on_buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  BufferPool* pool = g_pool.load(std::memory_order_acquire);
  *buffer = pool != nullptr ? pool->take() : nullptr;
  if (*buffer == nullptr) *buffer = g_last_resort;
  *size = kActivityBufferBytes;
  *max_records = 0;
}

void CUPTIAPI on_buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  if (BufferPool* pool = g_pool.load(std::memory_order_acquire)) pool->give_back(buffer, valid);
}

/// The tightest of three readings.
ClockAnchor read_anchor(const CuptiTable& cupti) {
  ClockAnchor best;
  for (int i = 0; i < 3; ++i) {
    std::uint64_t foreign = 0;
    ClockAnchor anchor;
    anchor.before = now();
    if (cupti.timestamp(&foreign) != CUPTI_SUCCESS) continue;
    anchor.after = now();
    anchor.foreign_ns = static_cast<std::int64_t>(foreign);
    if (best.foreign_ns == 0 || anchor.width() < best.width()) best = anchor;
  }
  return best;
}

bool is_needed(ApiClass api) { return api != ApiClass::kOther && api != ApiClass::kQuery; }

/// Slow by nature, so a callback around it costs nothing in proportion.
bool is_for_callbacks(ApiClass api) {
  switch (api) {
    case ApiClass::kStreamSync:
    case ApiClass::kDeviceSync:
    case ApiClass::kEventSync:
    case ApiClass::kMalloc:
    case ApiClass::kFree:
    case ApiClass::kHostMalloc:
    case ApiClass::kHostFree: return true;
    default: return false;
  }
}

}  // namespace

class CuptiSource::Impl {
 public:
  explicit Impl(NameTable& names) : names_{names} {}

  bool start(const CuptiSettings& settings);
  void poll(RecordSink& sink, bool flush);
  void stop();
  void force_out(RecordSink& sink);
  void drop_driver_calls();

  void note(std::string code, std::string text) { notes_.push_back({std::move(code), std::move(text)}); }

  NameTable& names_;
  CuptiTable cupti_;
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<ActivityDecoder> decoder_;
  ClockMap clock_;
  std::vector<SourceNote> notes_;
  bool active_ = false;
  CallbackMode callback_mode_ = CallbackMode::kOff;

 private:
  bool enable_kinds();
  bool prefer_callbacks(CallbackMode mode);
  void find_functions();
  void choose_functions(CUpti_CallbackDomain domain);
  void enable_call(const CallbackId& id, bool on);
  void take_subscriber();
  void yield_subscriber();
  void decode_filled(RecordSink& sink);
  void report_losses(RecordSink& sink);
  void emit_lost(std::uint64_t count, RecordSink& sink);

  CallbackSubscriber subscriber_;
  std::vector<CUpti_ActivityKind> enabled_;
  std::vector<CallbackId> functions_;        // recorded as activities
  std::vector<CallbackId> slow_functions_;   // those of them that a subscriber sees instead
  bool told_unreadable_ = false;
  bool whole_runtime_ = false;
  bool whole_driver_ = false;
  std::uint64_t modules_unloaded_ = 0;
};

bool CuptiSource::Impl::start(const CuptiSettings& settings) {
  if (active_) return true;
  if (!driver_present()) return false;
  if (const std::string tool = foreign_tool(); !tool.empty()) {
    note("stood_aside", fmt::format("{} traces this process; standing aside, no ledger", tool));
    return false;
  }
  if (!cupti_.complete()) {
    auto loaded = load_cupti(settings.path);
    if (!loaded) {
      note("no_cupti", loaded.error().message);
      return false;
    }
    cupti_ = *loaded;
    pool_ = std::make_unique<BufferPool>(settings.buffers);
    decoder_ = std::make_unique<ActivityDecoder>(cupti_, names_);
    g_pool.store(pool_.get(), std::memory_order_release);
  }
  callback_mode_ = settings.callbacks;
  if (cupti_.set_thread_id_type != nullptr) cupti_.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  if (const CUptiResult result = cupti_.register_callbacks(on_buffer_requested, on_buffer_completed);
      result != CUPTI_SUCCESS) {
    note("no_records", fmt::format("CUPTI gives no records: {}", describe(cupti_, result)));
    return false;
  }
  if (!enable_kinds()) return false;
  clock_.add(read_anchor(cupti_));
  find_functions();
  take_subscriber();
  choose_functions(CUPTI_CB_DOMAIN_RUNTIME_API);
  if (settings.driver_calls) choose_functions(CUPTI_CB_DOMAIN_DRIVER_API);
  active_ = true;
  return true;
}

bool CuptiSource::Impl::enable_kinds() {
  std::string missing;
  for (const auto& [kind, name] : kKinds) {
    const CUptiResult result = cupti_.enable(kind);
    if (result == CUPTI_SUCCESS) {
      enabled_.push_back(kind);
      continue;
    }
    missing += fmt::format("{}{}: {}", missing.empty() ? "" : ", ", name, describe(cupti_, result));
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      note("no_records", fmt::format("CUPTI records no kernels: {}", describe(cupti_, result)));
      return false;
    }
  }
  if (!missing.empty()) note("kinds_missing", fmt::format("CUPTI does not record {}", missing));
  return true;
}

void CuptiSource::Impl::find_functions() {
  functions_.clear();
  slow_functions_.clear();
  if (cupti_.callback_name == nullptr) return;
  for (const CUpti_CallbackDomain domain : {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API}) {
    std::uint32_t hole = 0;
    for (std::uint32_t id = 1; hole < kCallbackHole; ++id) {
      const auto& function = decoder_->function(domain, id);
      hole = function.name == kNoName ? hole + 1 : 0;
      if (!is_needed(function.traits.api)) continue;
      functions_.push_back({domain, id});
      // The driver call inside a runtime call would tell the same wait twice.
      if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && is_for_callbacks(function.traits.api))
        slow_functions_.push_back({domain, id});
    }
  }
}

bool CuptiSource::Impl::prefer_callbacks(CallbackMode mode) {
  if (mode == CallbackMode::kOff) return false;
  if (mode == CallbackMode::kAuto && torch_loaded()) return false;
  return true;
}

void CuptiSource::Impl::take_subscriber() {
  if (!prefer_callbacks(callback_mode_) || slow_functions_.empty()) return;
  std::string why_not;
  if (subscriber_.take(cupti_, slow_functions_, why_not) != CUPTI_SUCCESS)
    note("callbacks_off", fmt::format("callbacks off: {}; the ledger does without", why_not));
}

void CuptiSource::Impl::enable_call(const CallbackId& id, bool on) {
  const std::uint8_t value = on ? 1 : 0;
  if (id.domain == CUPTI_CB_DOMAIN_RUNTIME_API) cupti_.enable_runtime_api(id.callback, value);
  else cupti_.enable_driver_api(id.callback, value);
}

void CuptiSource::Impl::choose_functions(CUpti_CallbackDomain domain) {
  const bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  const bool selectable = (runtime ? cupti_.enable_runtime_api != nullptr : cupti_.enable_driver_api != nullptr) &&
                          !functions_.empty();
  if (!selectable) {  // an older CUPTI: all calls or none
    const auto kind = runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
    if (cupti_.enable(kind) == CUPTI_SUCCESS) enabled_.push_back(kind);
    else note("kinds_missing", fmt::format("CUPTI does not record {} calls", runtime ? "runtime" : "driver"));
    return;
  }
  for (const CallbackId& id : functions_)
    if (id.domain == domain) enable_call(id, true);
  if (!runtime || !subscriber_.taken()) return;
  for (const CallbackId& id : slow_functions_) enable_call(id, false);  // the subscriber sees those
}

void CuptiSource::Impl::yield_subscriber() {
  if (!subscriber_.taken()) return;
  subscriber_.release(cupti_);
  if (cupti_.enable_runtime_api != nullptr)
    for (const CallbackId& id : slow_functions_) enable_call(id, true);
}

void CuptiSource::Impl::poll(RecordSink& sink, bool flush) {
  if (pool_ == nullptr) return;
  if (active_ && flush && callback_mode_ == CallbackMode::kAuto && subscriber_.taken() && torch_loaded()) {
    yield_subscriber();
    note("callbacks_off", "callbacks off: torch has been loaded, whose profiler may want CUPTI's only subscriber");
  }
  if (flush) cupti_.flush_all(0);
  decode_filled(sink);
  if (flush) report_losses(sink);
}

void CuptiSource::Impl::decode_filled(RecordSink& sink) {
  const auto buffers = pool_->filled();
  if (buffers.empty() && clock_.empty()) return;
  // After the buffers were taken, so that no time in them lies beyond the newest anchor.
  if (const ClockAnchor anchor = read_anchor(cupti_); anchor.foreign_ns != 0) clock_.add(anchor);
  if (const std::uint64_t unloaded = CallbackSubscriber::modules_unloaded(); unloaded != modules_unloaded_) {
    modules_unloaded_ = unloaded;
    decoder_->forget_names();
  }
  for (const BufferPool::Filled& buffer : buffers) {
    if (!decoder_->decode(buffer, clock_, sink)) {
      if (!std::exchange(told_unreadable_, true))
        note("unreadable_buffer", "CUPTI cannot read records that it wrote; they are counted as lost");
      emit_lost(1, sink);  // at the least
    }
    pool_->recycle(buffer);
  }
  decoder_->finish_round(sink);
}

void CuptiSource::Impl::report_losses(RecordSink& sink) {
  std::size_t dropped = 0;
  if (cupti_.dropped_records != nullptr && cupti_.dropped_records(nullptr, 0, &dropped) != CUPTI_SUCCESS) dropped = 0;
  const std::uint64_t lost = dropped + pool_->take_sacrificed_bytes() / kTypicalRecordBytes;
  if (lost != 0) emit_lost(lost, sink);
}

void CuptiSource::Impl::emit_lost(std::uint64_t count, RecordSink& sink) {
  Record record;
  record.kind = RecordKind::kLost;
  record.start = record.end = now();
  record.value = count;
  sink.add(record);
}

void CuptiSource::Impl::drop_driver_calls() {
  if (!active_ || cupti_.enable_driver_api == nullptr) return;
  for (const CallbackId& id : functions_)
    if (id.domain == CUPTI_CB_DOMAIN_DRIVER_API) enable_call(id, false);
}

void CuptiSource::Impl::stop() {
  if (!active_) return;
  active_ = false;
  for (const CallbackId& id : functions_) {
    const bool runtime = id.domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    if (runtime ? cupti_.enable_runtime_api != nullptr : cupti_.enable_driver_api != nullptr) enable_call(id, false);
  }
  for (const CUpti_ActivityKind kind : enabled_) cupti_.disable(kind);
  enabled_.clear();
  subscriber_.release(cupti_);
}

void CuptiSource::Impl::force_out(RecordSink& sink) {
  if (pool_ == nullptr) return;
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

CuptiSource::CuptiSource(NameTable& names) : impl_{std::make_unique<Impl>(names)} {}
CuptiSource::~CuptiSource() = default;

bool CuptiSource::start(const CuptiSettings& settings) { return impl_->start(settings); }
bool CuptiSource::active() const { return impl_->active_; }
void CuptiSource::poll(RecordSink& sink, bool flush) { impl_->poll(sink, flush); }
void CuptiSource::stop() { impl_->stop(); }
void CuptiSource::force_out(RecordSink& sink) { impl_->force_out(sink); }
void CuptiSource::drop_driver_calls() { impl_->drop_driver_calls(); }
bool CuptiSource::done() const { return impl_->pool_ == nullptr || impl_->pool_->held() == 0; }
bool CuptiSource::backlog() const {
  return impl_->pool_ != nullptr && impl_->pool_->waiting() * 4 > impl_->pool_->limit();
}
TimePoint CuptiSource::delivered_until(TimePoint asked) const {
  if (impl_->pool_ == nullptr) return asked;
  const TimePoint oldest = impl_->pool_->oldest_held();
  if (oldest == kTimeMax) return asked;
  // An operation's record is written some time after it ended, into a buffer that was taken then.
  constexpr DurationNs kWritten = milliseconds(100);
  constexpr DurationNs kPatience = seconds(5);
  return std::max(std::min(asked, oldest - kWritten), asked - kPatience);
}
std::vector<SourceNote> CuptiSource::take_notes() { return std::exchange(impl_->notes_, {}); }

Record CuptiSource::call_record(const HostMessage& message) {
  Record record;
  record.kind = RecordKind::kApiCall;
  record.start = message.start;
  record.end = message.end;
  record.thread = ThreadId{message.thread};
  record.correlation = CorrelationId{message.correlation};
  record.flags = message.flags;
  if (impl_->decoder_ == nullptr) return record;
  const bool runtime = (message.callback & kRuntimeCallbackBit) != 0;
  const auto& function = impl_->decoder_->function(
      runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, message.callback & ~kRuntimeCallbackBit);
  record.name = function.name;
  record.api = function.traits.api;
  record.flags |= function.traits.flags;
  impl_->decoder_->note_call(record);
  return record;
}

CuptiCounts CuptiSource::counts() const {
  CuptiCounts counts;
  if (impl_->decoder_ == nullptr) return counts;
  const DecodedCounts& decoded = impl_->decoder_->counts();
  counts.calls = decoded.calls;
  counts.launches = decoded.launches;
  counts.operations = decoded.operations;
  counts.buffers_made = impl_->pool_->made();
  counts.clock_steps = impl_->clock_.steps();
  return counts;
}

}  // namespace gpudiag
