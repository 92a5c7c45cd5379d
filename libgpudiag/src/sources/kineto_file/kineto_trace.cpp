// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/kineto_trace.hpp"

#include <fmt/format.h>

#include <system_error>
#include <thread>
#include <utility>

#include "sources/kineto_file/block_pipe.hpp"
#include "sources/kineto_file/byte_input.hpp"
#include "sources/kineto_file/event_decoder.hpp"
#include "sources/kineto_file/record_order.hpp"
#include "sources/kineto_file/text_producer.hpp"
#include "sources/kineto_file/trace_event.hpp"
#include "sources/kineto_file/trace_info.hpp"
#include "sources/sanitizer.hpp"

namespace gpudiag {

using namespace kineto_file;

struct KinetoTrace::Contents {
  NameTable names;
  RecordStore records;
  std::vector<Delivery> order;
  Interval session;
  KinetoInfo info;
  std::vector<KinetoProcess> processes;
  Quality quality;
};

namespace {

constexpr std::size_t kPipeDepth = 16;  // 4 MiB: bridges what the scheduler takes away
constexpr DurationNs kTickEvery = milliseconds(200);  // as often as a live session flushes

/// [parsing thread] Takes blocks until there are no more.
void parse_blocks(BlockPipe& pipe, EventDecoder& decoder, KinetoInfo& info, Quality& quality,
                  const KinetoReadOptions& options) {
  EventParser parser;
  TraceEvent event;
  while (auto block = pipe.take_full()) {
    info.events += block->events.size();
    for (const Cut& cut : block->events) {
      const std::string_view text = block->event(cut);
      if (is_uninteresting(text)) continue;
      const ParseOutcome outcome = parser.parse(text, event);
      if (outcome == ParseOutcome::kBroken) {
        ++quality[Defect::kBrokenEvent];
        continue;
      }
      if (outcome == ParseOutcome::kRepaired) ++quality[Defect::kRepairedText];
      decoder.decode(event);
    }
    if (options.on_progress) options.on_progress(block->consumed, info.file_bytes);
    pipe.give_empty(std::move(*block));
  }
  decoder.finish();
}

std::string unix_time(std::int64_t base_ns, TimePoint origin) {
  return fmt::format("{}", static_cast<std::int64_t>(static_cast<std::uint64_t>(base_ns) +
                                                     static_cast<std::uint64_t>(origin.ns)));
}

}  // namespace

Result<KinetoTrace> KinetoTrace::read(const std::filesystem::path& path,
                                      const KinetoReadOptions& options) {
  auto input = open_input(path);
  if (!input) return input.error();
  auto contents = std::make_unique<Contents>();
  std::error_code ignored;
  const auto file_bytes = std::filesystem::file_size(path, ignored);
  contents->info.file_bytes = ignored ? 0 : file_bytes;

  EventCutter cutter;
  EventDecoder decoder{contents->names};
  BlockPipe pipe{kPipeDepth};
  ProducerResult produced;
  {
    std::jthread producer{[&] { produced = produce_blocks(**input, cutter, pipe); }};
    parse_blocks(pipe, decoder, contents->info, contents->quality, options);
  }
  if (!cutter.is_trace() || !cutter.found_events()) {
    return Error{
        fmt::format("{} is no Chrome or Kineto trace: expected a JSON array of events or an "
                    "object with \"traceEvents\"",
                    path.string())};
  }

  TraceMembers members = read_members(cutter.members());
  members.info.events = contents->info.events;
  members.info.file_bytes = contents->info.file_bytes;
  members.info.json_bytes = produced.json_bytes;
  contents->info = std::move(members.info);
  contents->quality[Defect::kBrokenEvent] += cutter.broken() + decoder.broken();
  contents->quality[Defect::kTruncated] = produced.truncated ? 1 : 0;

  RecordStore& records = contents->records = std::move(decoder.records());
  contents->processes = assign_processes(records, decoder.pids());
  add_event_records(records, decoder.recorded_events());
  const Interval session = find_session(records);
  const TimePoint origin = find_origin(records, session);
  contents->order = order_records(records, origin, session);
  contents->session = relative_to(session, origin);
  contents->info.origin_unix_ns = unix_time(members.base_ns, origin);
  return KinetoTrace{std::move(contents)};
}

KinetoTrace::KinetoTrace(std::unique_ptr<Contents> contents) : contents_{std::move(contents)} {}
KinetoTrace::KinetoTrace(KinetoTrace&&) noexcept = default;
KinetoTrace& KinetoTrace::operator=(KinetoTrace&&) noexcept = default;
KinetoTrace::~KinetoTrace() = default;

const NameTable& KinetoTrace::names() const {
  return contents_->names;
}
const KinetoInfo& KinetoTrace::info() const {
  return contents_->info;
}
const std::vector<KinetoProcess>& KinetoTrace::processes() const {
  return contents_->processes;
}
const Quality& KinetoTrace::quality() const {
  return contents_->quality;
}

void KinetoTrace::deliver(ProcessId process, RecordSink& sink) const {
  Sanitizer sanitizer{sink};
  sanitizer.set_session(contents_->session);
  TimePoint next_tick = kTimeMin;
  for (const Delivery& delivery : contents_->order) {
    const Record& record = contents_->records[delivery.index];
    if (record.process != process) continue;
    if (delivery.at >= next_tick) {
      Record tick;
      tick.kind = RecordKind::kTick;
      tick.process = process;
      tick.start = tick.end = delivery.at;
      if (next_tick != kTimeMin) sanitizer.add(tick);
      next_tick = relative_to({delivery.at, delivery.at}, TimePoint{-kTickEvery.ns}).start;
    }
    sanitizer.add(record);
  }
}

}  // namespace gpudiag
