// SPDX-License-Identifier: Apache-2.0
#include "sources/recorded/recorded_trace.hpp"

#include <fmt/format.h>

#include <utility>

#include "sources/recorded/contents.hpp"
#include "sources/sanitizer.hpp"

namespace gpudiag {

namespace {

constexpr DurationNs kTickEvery = milliseconds(200);  // as often as a live session flushes

}  // namespace

void recorded::Contents::put_in_order(std::int64_t unix_ns) {
  const Interval file_session = find_session(records);
  const TimePoint origin = find_origin(records, file_session);
  order = order_records(records, origin, file_session);
  session = relative_to(file_session, origin);
  const auto at = static_cast<std::uint64_t>(unix_ns) + static_cast<std::uint64_t>(origin.ns);
  info.origin_unix_ns = fmt::format("{}", static_cast<std::int64_t>(at));
}

RecordedTrace::RecordedTrace(std::unique_ptr<recorded::Contents> contents)
    : contents_{std::move(contents)} {}
RecordedTrace::RecordedTrace(RecordedTrace&&) noexcept = default;
RecordedTrace& RecordedTrace::operator=(RecordedTrace&&) noexcept = default;
RecordedTrace::~RecordedTrace() = default;

const NameTable& RecordedTrace::names() const {
  return contents_->names;
}
const RecordedInfo& RecordedTrace::info() const {
  return contents_->info;
}
const std::vector<RecordedProcess>& RecordedTrace::processes() const {
  return contents_->processes;
}
const Quality& RecordedTrace::quality() const {
  return contents_->quality;
}

void RecordedTrace::deliver(ProcessId process, RecordSink& sink) const {
  Sanitizer sanitizer{sink};
  sanitizer.set_session(contents_->session);
  TimePoint next_tick = kTimeMin;
  for (const recorded::Delivery& delivery : contents_->order) {
    const Record& record = contents_->records[delivery.index];
    if (record.process != process) continue;
    if (delivery.at >= next_tick) {
      Record tick;
      tick.kind = RecordKind::kTick;
      tick.process = process;
      tick.start = tick.end = delivery.at;
      if (next_tick != kTimeMin) sanitizer.add(tick);
      next_tick = recorded::relative_to({delivery.at, delivery.at}, TimePoint{-kTickEvery.ns}).start;
    }
    sanitizer.add(record);
  }
}

}  // namespace gpudiag
