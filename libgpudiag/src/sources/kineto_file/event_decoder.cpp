// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/event_decoder.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "sources/kineto_file/collective_args.hpp"
#include "sources/kineto_file/json_string.hpp"
#include "sources/kineto_file/number_text.hpp"
#include "sources/launch_shape.hpp"
#include "sources/recorded/record_order.hpp"
#include "sources/text.hpp"

namespace gpudiag::kineto_file {
namespace {

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max()
               : std::numeric_limits<std::int64_t>::min();
}

/// `[13, 1, 1]`; zeros where there are fewer numbers.
Dimensions dimensions_of(std::string_view token) {
  Dimensions dimensions{};
  std::size_t at = token.find('[');
  for (std::uint32_t& size : dimensions) {
    if (at == token.npos) break;
    const std::size_t end = token.find_first_of(",]", at + 1);
    if (end == token.npos) break;
    if (const auto value = integer_of(token.substr(at + 1, end - at - 1))) size = fold_id(*value);
    at = end;
  }
  return dimensions;
}

std::uint64_t shape_of(const TraceEvent& event) {
  if (event[Field::kGrid].empty()) return 0;
  return launch_shape(dimensions_of(event[Field::kGrid]), dimensions_of(event[Field::kBlock]));
}

/// `Memcpy HtoD (Pageable -> Device)`. An array (A) is memory of a device.
CopyKind copy_kind_of(std::string_view name) {
  const std::size_t to = name.find("to");
  if (to == name.npos || to == 0 || to + 2 >= name.size()) return CopyKind::kUnknown;
  const char from = name[to - 1];
  const char into = name[to + 2];
  if (from == 'P' && into == 'P') return CopyKind::kPeer;
  const auto is_device = [](char c) { return c == 'D' || c == 'A'; };
  if (from == 'H' && into == 'H') return CopyKind::kHostToHost;
  if (from == 'H' && is_device(into)) return CopyKind::kHostToDevice;
  if (is_device(from) && into == 'H') return CopyKind::kDeviceToHost;
  if (is_device(from) && is_device(into)) return CopyKind::kDeviceToDevice;
  return CopyKind::kUnknown;
}

/// By `cuda_sync_kind` or by name; both have been written in words and as function names.
SyncKind sync_kind_of(std::string_view text) {
  const auto has = [text](std::string_view what) { return text.find(what) != text.npos; };
  if (has("Wait")) return SyncKind::kStreamWaitsEvent;
  if (has("Event")) return SyncKind::kEvent;
  if (has("Stream")) return SyncKind::kStream;
  if (has("Context") || has("Device")) return SyncKind::kContext;
  return SyncKind::kUnknown;
}

/// Of an id that -1 or absence says is none.
std::uint64_t id_or_zero(std::string_view token) {
  const auto value = integer_of(token);
  return value && *value > 0 && *value != std::numeric_limits<std::uint32_t>::max()
             ? static_cast<std::uint64_t>(*value)
             : 0;
}

std::uint64_t bytes_of(std::string_view token) {
  const auto value = integer_of(token);
  return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

/// What stands in the stack of open events for one that becomes no record.
constexpr RecordKind kIgnored = RecordKind::kTick;

template <typename Id>
Id id_or(std::string_view token, Id otherwise) {
  const auto value = integer_of(token);
  return value ? Id{fold_id(*value)} : otherwise;
}

}  // namespace

EventDecoder::Category EventDecoder::category_of(std::string_view text) {
  using enum Category;
  struct Named {
    std::string_view name;
    Category category;
  };
  // Capitals are the names of 2021; the order is that of how often they come.
  static constexpr auto kNamed = std::to_array<Named>({
      {"cpu_op", kOperator},
      {"python_function", kPython},
      {"cuda_runtime", kApi},
      {"kernel", kKernel},
      {"user_annotation", kAnnotation},
      {"gpu_memcpy", kMemcpy},
      {"gpu_memset", kMemset},
      {"cuda_driver", kApi},
      {"cuda_sync", kSync},
      {"Operator", kOldOperator},
      {"Runtime", kApi},
      {"Kernel", kKernel},
      {"Memcpy", kMemcpy},
      {"Memset", kMemset},
  });
  const auto* const found = std::ranges::find(kNamed, text, &Named::name);
  return found == kNamed.end() ? kNone : found->category;
}

void EventDecoder::decode(const TraceEvent& event) {
  const std::string_view phase = unquoted(event[Field::kPhase]);
  if (phase == "E") {
    end_open_event(event);
    return;
  }
  const Category category = category_of(unquoted(event[Field::kCategory]));
  const bool begins = phase == "B";
  const bool complete = phase == "X" || (phase.empty() && !event[Field::kDuration].empty());
  if (!begins && (category == Category::kNone || !complete)) return;
  const auto start = nanoseconds_of_microseconds(event[Field::kTime]);
  if (!start) {
    ++broken_;
    return;
  }
  Record record;
  record.start = record.end = TimePoint{*start};
  fill(record, category, event);
  if (begins) {
    open_[lane_of(event)].push_back(record);
    return;
  }
  const auto duration = nanoseconds_of_microseconds(event[Field::kDuration]);
  if (!duration) record.flags |= record_flag::kIncomplete;
  record.end = TimePoint{saturating_add(*start, duration.value_or(0))};
  // CUPTI's way of saying that it could not time a thing.
  if (*start == 0 && record.end.ns == 0) record.flags |= record_flag::kUntimed;
  records_.add(record);
}

void EventDecoder::end_open_event(const TraceEvent& event) {
  const auto open = open_.find(lane_of(event));
  const auto end = nanoseconds_of_microseconds(event[Field::kTime]);
  if (open == open_.end() || open->second.empty() || !end) {
    ++broken_;
    return;
  }
  Record record = open->second.back();
  open->second.pop_back();
  record.end = TimePoint{*end};
  if (record.kind != kIgnored) records_.add(record);
}

EventDecoder::Lane EventDecoder::lane_of(const TraceEvent& event) {
  return {integer_of(event[Field::kProcess]).value_or(-1),
          fold_id(integer_of(event[Field::kThread]).value_or(-1))};
}

void EventDecoder::finish() {
  for (auto& [lane, records] : open_) {
    for (Record& record : records) {
      if (record.kind == kIgnored) continue;
      record.flags |= record_flag::kIncomplete;
      records_.add(record);
    }
  }
  open_.clear();
}

void EventDecoder::fill(Record& record, Category category, const TraceEvent& event) {
  using enum Category;
  record.name = name_of(event[Field::kName]);
  switch (category) {
    case kKernel:
      record.kind = RecordKind::kKernel;
      record.value = shape_of(event);
      if (const auto about = collective_of(event))
        record.value2 = value2_of({names_.intern(text_of(*about)), sequence_of(event)});
      fill_device(record, event);
      break;
    case kMemcpy: {
      const std::string_view name = names_.text(record.name);
      record.kind = RecordKind::kMemcpy;
      record.copy = copy_kind_of(name);
      record.value = bytes_of(event[Field::kBytes]);
      if (name.find("Pageable") != name.npos) record.flags |= record_flag::kPageable;
      fill_device(record, event);
      break;
    }
    case kMemset:
      record.kind = RecordKind::kMemset;
      record.value = bytes_of(event[Field::kBytes]);
      fill_device(record, event);
      break;
    case kSync:
      fill_sync(record, event);
      break;
    case kApi: {
      const ApiTraits& traits = traits_of(record.name);
      record.kind = RecordKind::kApiCall;
      record.api = traits.api;
      record.flags |= traits.flags;
      record.correlation = id_or(event[Field::kCorrelation], kNoCorrelation);
      fill_host(record, event);
      break;
    }
    case kOldOperator: {
      // Old traces file annotations under operators; torch's own bear a '#', no operator does.
      const bool annotation = names_.text(record.name).find('#') != std::string_view::npos;
      record.kind = RecordKind::kRange;
      record.range = annotation ? RangeSource::kAnnotation : RangeSource::kOperator;
      fill_host(record, event);
      break;
    }
    case kOperator:
    case kAnnotation:
    case kPython:
      record.kind = RecordKind::kRange;
      record.range = category == kOperator     ? RangeSource::kOperator
                     : category == kAnnotation ? RangeSource::kAnnotation
                                               : RangeSource::kPython;
      fill_host(record, event);
      break;
    case kNone:
      break;
  }
}

void EventDecoder::fill_host(Record& record, const TraceEvent& event) {
  record.process = process_of(event[Field::kProcess]);
  record.thread = id_or(event[Field::kThread], ThreadId{});
}

void EventDecoder::fill_device(Record& record, const TraceEvent& event) {
  record.process = recorded::kDeviceProcess;
  record.device = id_or(event[Field::kDevice], id_or(event[Field::kProcess], kNoDevice));
  record.context = id_or(event[Field::kContext], ContextId{});
  record.stream = id_or(event[Field::kStream], id_or(event[Field::kThread], kNoStream));
  record.correlation = id_or(event[Field::kCorrelation], kNoCorrelation);
  record.graph = id_or(event[Field::kGraph], GraphId{});
}

void EventDecoder::fill_sync(Record& record, const TraceEvent& event) {
  fill_device(record, event);
  record.kind = RecordKind::kSync;
  record.graph = GraphId{};
  record.sync = sync_kind_of(unquoted(event[Field::kSyncKind]));
  if (record.sync == SyncKind::kUnknown) record.sync = sync_kind_of(names_.text(record.name));
  record.value = id_or_zero(event[Field::kWaitEvent]);
  record.value2 = id_or_zero(event[Field::kWaitCorrelation]);
  const StreamId waited = id_or(event[Field::kWaitStream], kNoStream);
  if (record.value2 == 0 || waited == kNoStream) return;
  recorded_[static_cast<std::uint32_t>(record.value2)] = {record.value, waited, record.device};
}

NameId EventDecoder::name_of(std::string_view token) {
  const std::string_view escaped = unquoted(token);
  const auto found = names_by_token_.find(escaped);
  if (found != names_by_token_.end()) return found->second;
  const std::string text = unescaped(escaped);
  const NameId id = names_.intern(is_clean_text(text) ? text : repaired_text(text));
  names_by_token_.emplace(escaped, id);
  return id;
}

const ApiTraits& EventDecoder::traits_of(NameId name) {
  if (raw(name) >= traits_.size()) traits_.resize(raw(name) + std::size_t{1});
  auto& traits = traits_[raw(name)];
  if (!traits) traits = api_traits(names_.text(name));
  return *traits;
}

ProcessId EventDecoder::process_of(std::string_view token) {
  const std::int64_t pid = integer_of(token).value_or(-1);
  if (pids_.empty() || pids_[raw(last_process_)] != pid) {
    const auto next = static_cast<std::uint32_t>(pids_.size());
    const auto [found, inserted] = processes_.try_emplace(pid, ProcessId{next});
    if (inserted) pids_.push_back(pid);
    last_process_ = found->second;
  }
  return last_process_;
}

}  // namespace gpudiag::kineto_file
