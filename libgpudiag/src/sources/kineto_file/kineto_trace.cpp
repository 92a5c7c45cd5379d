// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/kineto_trace.hpp"

#include <fmt/format.h>

#include <system_error>
#include <thread>
#include <utility>

#include "sources/kineto_file/block_pipe.hpp"
#include "sources/kineto_file/byte_input.hpp"
#include "sources/kineto_file/event_decoder.hpp"
#include "sources/kineto_file/event_records.hpp"
#include "sources/kineto_file/text_producer.hpp"
#include "sources/kineto_file/trace_event.hpp"
#include "sources/kineto_file/trace_info.hpp"
#include "sources/recorded/contents.hpp"

namespace gpudiag {

using namespace kineto_file;

namespace {

constexpr std::size_t kPipeDepth = 16;  // 4 MiB: bridges what the scheduler takes away

/// [parsing thread] Takes blocks until there are no more.
void parse_blocks(BlockPipe& pipe, EventDecoder& decoder, RecordedInfo& info, Quality& quality,
                  const ReadOptions& options) {
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

}  // namespace

Result<RecordedTrace> read_kineto(const std::filesystem::path& path, const ReadOptions& options) {
  auto input = open_input(path);
  if (!input) return input.error();
  auto contents = std::make_unique<recorded::Contents>();
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
  members.info.torch = true;  // it is torch.profiler's format
  contents->info = std::move(members.info);
  contents->quality[Defect::kBrokenEvent] += cutter.broken() + decoder.broken();
  contents->quality[Defect::kTruncated] = produced.truncated ? 1 : 0;

  recorded::RecordStore& records = contents->records = std::move(decoder.records());
  contents->processes = recorded::assign_processes(records, decoder.pids());
  add_event_records(records, decoder.recorded_events());
  contents->put_in_order(members.base_ns);
  return RecordedTrace{std::move(contents)};
}

}  // namespace gpudiag
