// SPDX-License-Identifier: Apache-2.0
#include "run_lines.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <optional>
#include <span>
#include <string>

#include "report/ledger_json.hpp"

namespace gpudiag::tool {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

// Thrown and caught within this file: a line that lacks a field, or holds another type, is broken as
// a whole, so there is one way out of the thirty look-ups a line needs.
struct BrokenLine {};

template <typename T>
T must(simdjson::simdjson_result<T> result) {
  T value{};
  if (std::move(result).get(value) != simdjson::SUCCESS) throw BrokenLine{};
  return value;
}

element at(element from, std::string_view key) { return must<element>(from[key]); }
std::string_view text_at(element from, std::string_view key) {
  return must<std::string_view>(at(from, key).get_string());
}
std::int64_t int_at(element from, std::string_view key) {
  return must<std::int64_t>(at(from, key).get_int64());
}
std::uint64_t count_at(element from, std::string_view key) {
  return must<std::uint64_t>(at(from, key).get_uint64());
}
bool bool_at(element from, std::string_view key) { return must<bool>(at(from, key).get_bool()); }
DurationNs time_at(element from, std::string_view key) { return {int_at(from, key)}; }

std::optional<DurationNs> maybe_time_at(element from, std::string_view key) {
  if (at(from, key).is_null()) return std::nullopt;
  return time_at(from, key);
}

// The enumerator of that name. A name of a later version makes the line unreadable, never wrong.
template <typename Enum>
Enum named(std::string_view name, std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  throw BrokenLine{};
}

CauseTimes causes_of(element from) {
  CauseTimes times{};
  for (std::size_t i = 0; i < kCauseCount; ++i)
    times[i] = time_at(from, fmt::format("{}_ns", kCauseNames[i]));
  return times;
}

Evidence evidence_of(element from) {
  Evidence evidence;
  evidence.cause = named<Cause>(text_at(from, "cause"), kCauseNames);
  evidence.sub_cause = named<SubCause>(text_at(from, "sub_cause"), kSubCauseNames);
  evidence.what = text_at(from, "what");
  evidence.thread = ThreadId{static_cast<std::uint32_t>(count_at(from, "thread"))};
  evidence.count = count_at(from, "count");
  evidence.host = time_at(from, "host_ns");
  evidence.charged = time_at(from, "charged_ns");
  evidence.longest_at = {int_at(from, "longest_at_ns")};
  std::uint64_t bytes = 0;  // not said by earlier versions
  if (from["bytes"].get(bytes) == simdjson::SUCCESS) evidence.bytes = bytes;
  return evidence;
}

void read_costs(element from, IterationLedger& ledger) {
  ledger.replay_cost = causes_of(from);
  ledger.replay_cost_communication = time_at(from, "communication_ns");
  ledger.replay_cost_copy = time_at(from, "copy_ns");
  ledger.replay_cost_all_host = time_at(from, "all_host_ns");
}

void read_times(element from, IterationLedger& ledger) {
  ledger.start = {int_at(from, "start_ns")};
  ledger.wall = time_at(from, "wall_ns");
  ledger.host_step = time_at(from, "host_step_ns");
  ledger.compute = time_at(from, "compute_ns");
  ledger.communication = time_at(from, "communication_ns");
  ledger.copy = time_at(from, "copy_ns");
  ledger.idle = time_at(from, "idle_ns");
  ledger.idle_by_cause = causes_of(at(from, "idle"));
  read_costs(at(from, "replay_cost"), ledger);
  const element communication = at(from, "communication");
  ledger.communication_total = time_at(communication, "total_ns");
  ledger.straggler_wait = maybe_time_at(communication, "straggler_wait_ns");
  ledger.transfer = maybe_time_at(communication, "transfer_ns");
  ledger.copy_total = time_at(at(from, "copy"), "total_ns");
  ledger.own = time_at(from, "own_ns");
}

WhatIf answer_of(element from) {
  WhatIf answer;
  std::size_t place = 0;
  for (element name : must<simdjson::dom::array>(at(from, "without").get_array()))
    if (place < answer.without.size())
      answer.without[place++] = removal_named(must<std::string_view>(name.get_string()));
  answer.saved = time_at(from, "saved_ns");
  return answer;
}

IterationLedger iteration_of(element from) {
  IterationLedger ledger;
  ledger.device = DeviceId{static_cast<std::uint32_t>(count_at(from, "device"))};
  ledger.index = count_at(from, "index");
  ledger.label = text_at(from, "label");
  ledger.opened_by = named<MarkSource>(text_at(from, "opened_by"), kMarkSourceNames);
  ledger.phase = named<Phase>(text_at(from, "phase"), kPhaseNames);
  ledger.partial = bool_at(from, "partial");
  ledger.empty = bool_at(from, "empty");
  for (const auto [reason, count] : must<object>(at(from, "invalid_counts").get_object()))
    ledger.invalid[named<std::size_t>(reason, kInvalidReasonNames)] =
        must<std::uint64_t>(count.get_uint64());
  read_times(from, ledger);
  ledger.launches = count_at(from, "launches");
  ledger.operations = count_at(from, "operations");
  ledger.opaque_graphs = count_at(from, "opaque_graphs");
  for (element one : must<simdjson::dom::array>(at(from, "evidence").get_array()))
    ledger.evidence.push_back(evidence_of(one));
  simdjson::dom::array answers;  // not said by earlier versions
  if (from["what_if"].get(answers) == simdjson::SUCCESS)
    for (element one : answers) ledger.what_if.push_back(answer_of(one));
  return ledger;
}

Quality quality_of(element from) {
  Quality quality;
  quality.records = count_at(from, "records");
  const element defects = at(from, "defects");
  for (std::size_t i = 0; i < kDefectNames.size(); ++i)
    quality.defects[i] = count_at(defects, kDefectNames[i]);
  return quality;
}

DeviceInfo device_of(element from) {
  return {DeviceId{static_cast<std::uint32_t>(count_at(from, "device"))},
          std::string{text_at(from, "name")}};
}

void read_start(element from, SessionInfo& info) {
  const std::string_view origin = text_at(from, "origin_unix_ns");
  std::from_chars(origin.data(), origin.data() + origin.size(), info.origin_unix_ns);
  info.rank = static_cast<std::uint32_t>(count_at(from, "rank"));
  info.host = text_at(from, "host");
  info.pid = count_at(from, "pid");
  info.source = text_at(from, "source");
  info.version = text_at(from, "version");
  bool torch = false;  // not said by earlier versions
  if (from["torch"].get(torch) == simdjson::SUCCESS) info.torch = torch;
  info.devices.clear();
  for (element device : must<simdjson::dom::array>(at(from, "devices").get_array()))
    info.devices.push_back(device_of(device));
  info.options.clear();
  for (const auto [name, value] : must<object>(at(from, "options").get_object()))
    info.options.emplace_back(name, must<std::string_view>(value.get_string()));
}

}  // namespace

class RunLines::Parser {
 public:
  element parse(std::string_view line) {
    return must<element>(parser_.parse(line.data(), line.size(), true));
  }

 private:
  simdjson::dom::parser parser_;
};

RunLines::RunLines(RankCollector& collector)
    : parser_{std::make_unique<Parser>()}, collector_{collector} {}
RunLines::~RunLines() = default;

void RunLines::add(std::string_view line, bool last) {
  if (line.empty()) return;
  try {
    const element whole = parser_->parse(line);
    if (text_at(whole, "schema") == kIterationSchema) {
      collector_.add(iteration_of(whole));
      return;
    }
    if (text_at(whole, "schema") != kSessionSchema) throw BrokenLine{};
    const std::string_view event = text_at(whole, "event");
    if (event == "start") read_start(whole, collector_.info());
    if (event == "device") collector_.add_device(device_of(whole));
    if (event == "note")
      collector_.add_note({{int_at(whole, "at_ns")}, std::string{text_at(whole, "code")},
                           std::string{text_at(whole, "text")}});
    if (event == "quality" || event == "end") quality_ = quality_of(at(whole, "quality"));
    if (event == "end") ended_ = true;
  } catch (const BrokenLine&) {
    ++(last ? truncated_ : broken_);
  }
}

void RunLines::finish() {
  quality_[Defect::kBrokenEvent] += broken_;
  quality_[Defect::kTruncated] += truncated_;
  collector_.set_quality(quality_);
  collector_.set_finished(ended_);
}

}  // namespace gpudiag::tool
