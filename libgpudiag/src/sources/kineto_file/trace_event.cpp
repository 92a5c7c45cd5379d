// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/trace_event.hpp"

#include <simdjson.h>

#include <optional>
#include <string>

#include "sources/kineto_file/number_text.hpp"
#include "sources/kineto_file/object_end.hpp"
#include "sources/text.hpp"

namespace gpudiag::kineto_file {
namespace {

static_assert(kScanPadding >= simdjson::SIMDJSON_PADDING);

std::optional<Field> event_field(std::string_view key) {
  using enum Field;
  switch (key.size()) {
    case 2:
      if (key == "ph") return kPhase;
      if (key == "ts") return kTime;
      break;
    case 3:
      if (key == "cat") return kCategory;
      if (key == "pid") return kProcess;
      if (key == "tid") return kThread;
      if (key == "dur") return kDuration;
      break;
    case 4:
      if (key == "name") return kName;
      break;
    default:
      break;
  }
  return std::nullopt;
}

std::optional<Field> argument_field(std::string_view key) {
  using enum Field;
  switch (key.size()) {
    case 3:
      if (key == "Seq") return kSequence;
      break;
    case 4:
      if (key == "grid") return kGrid;
      break;
    case 5:
      if (key == "dtype") return kElementType;
      if (key == "block") return kBlock;
      if (key == "bytes") return kBytes;
      break;
    case 6:
      if (key == "device") return kDevice;
      if (key == "stream") return kStream;
      break;
    case 7:
      if (key == "context") return kContext;
      break;
    case 8:
      if (key == "graph id") return kGraph;
      if (key == "Src Rank") return kRankFrom;
      if (key == "Dst Rank") return kRankTo;
      break;
    case 10:
      if (key == "Group size") return kGroupSize;
      break;
    case 11:
      if (key == "correlation") return kCorrelation;
      break;
    case 13:
      if (key == "In msg nelems") return kElementsIn;
      break;
    case 14:
      if (key == "Out msg nelems") return kElementsOut;
      if (key == "cuda_sync_kind") return kSyncKind;
      if (key == "wait_on_stream") return kWaitStream;
      break;
    case 15:
      if (key == "Collective name") return kCollective;
      break;
    case 18:
      if (key == "Process Group Name") return kGroupName;
      break;
    case 19:
      if (key == "Process Group Ranks") return kGroupRanks;
      break;
    case 21:
      if (key == "wait_on_cuda_event_id") return kWaitEvent;
      break;
    case 33:
      if (key == "wait_on_cuda_event_record_corr_id") return kWaitCorrelation;
      break;
    default:
      break;
  }
  return std::nullopt;
}

/// Keys with escapes are none of ours.
std::string_view key_text(simdjson::ondemand::raw_json_string key) {
  const char* const text = key.raw();
  std::size_t length = 0;
  while (text[length] != '"' && text[length] != '\\') ++length;
  return {text, length};
}

/// Operators and Python frames are most of a trace and have nothing in their args that we need.
bool needs_arguments(std::string_view category) {
  const std::string_view name = unquoted(category);
  return name != "cpu_op" && name != "python_function" && name != "user_annotation" &&
         name != "Operator";
}

/// Raw control characters inside strings and bytes that are no UTF-8, all as U+FFFD.
std::string repaired_json(std::string_view text) {
  std::string out;
  bool in_string = false;
  std::size_t plain_from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      // Outside of strings bytes are copied: white space must stay.
      const std::string_view piece = text.substr(plain_from, i - plain_from);
      out += in_string ? repaired_text(piece) : std::string{piece};
      out += '"';
      in_string = !in_string;
      plain_from = i + 1;
    } else if (in_string && text[i] == '\\') {
      ++i;
    }
  }
  return out.append(text.substr(plain_from));
}

}  // namespace

class EventParser::Impl {
 public:
  simdjson::error_code parse(std::string_view text, TraceEvent& event) {
    event = {};
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    auto error =
        parser_.iterate(text.data(), text.size(), text.size() + kScanPadding).get(document);
    if (error == simdjson::SUCCESS) error = document.get_object().get(object);
    if (error == simdjson::SUCCESS) error = read_fields(object, event);
    return error;
  }

  /// In a buffer of its own, which holds what `event` then points to.
  simdjson::error_code parse_repaired(std::string_view text, TraceEvent& event) {
    repaired_ = repaired_json(text);
    const std::size_t size = repaired_.size();
    repaired_.resize(size + kScanPadding);
    return parse(std::string_view{repaired_}.substr(0, size), event);
  }

 private:
  static simdjson::error_code read_fields(simdjson::ondemand::object object, TraceEvent& event) {
    for (auto each : object) {
      simdjson::ondemand::field field;
      if (const auto error = std::move(each).get(field)) return error;
      const std::string_view key = key_text(field.key());
      if (key == "args") {
        if (!needs_arguments(event[Field::kCategory])) continue;
        if (const auto error = read_arguments(field.value(), event)) return error;
      } else if (const auto known = event_field(key)) {
        event.fields[static_cast<std::size_t>(*known)] = field.value().raw_json_token();
      }
    }
    return simdjson::SUCCESS;
  }

  static simdjson::error_code read_arguments(simdjson::ondemand::value value, TraceEvent& event) {
    simdjson::ondemand::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) return simdjson::SUCCESS;
    for (auto each : object) {
      simdjson::ondemand::field field;
      if (const auto error = std::move(each).get(field)) return error;
      const auto known = argument_field(key_text(field.key()));
      if (!known) continue;
      std::string_view& token = event.fields[static_cast<std::size_t>(*known)];
      if (*known != Field::kGrid && *known != Field::kBlock) {
        token = field.value().raw_json_token();
        continue;
      }
      simdjson::ondemand::array array;
      if (field.value().get_array().get(array) != simdjson::SUCCESS) continue;
      if (const auto error = array.raw_json().get(token)) return error;
    }
    return simdjson::SUCCESS;
  }

  simdjson::ondemand::parser parser_;
  std::string repaired_;
};

EventParser::EventParser() : impl_{std::make_unique<Impl>()} {}
EventParser::~EventParser() = default;

ParseOutcome EventParser::parse(std::string_view text, TraceEvent& event) {
  const simdjson::error_code error = impl_->parse(text, event);
  if (error == simdjson::SUCCESS) return ParseOutcome::kParsed;
  if (error != simdjson::UNESCAPED_CHARS && error != simdjson::UTF8_ERROR) {
    return ParseOutcome::kBroken;
  }
  return impl_->parse_repaired(text, event) == simdjson::SUCCESS ? ParseOutcome::kRepaired
                                                                 : ParseOutcome::kBroken;
}

bool is_uninteresting(std::string_view text) {
  const auto skip_white = [&text] {
    while (!text.empty() && static_cast<unsigned char>(text.front()) <= 0x20) text.remove_prefix(1);
  };
  const auto take = [&](std::string_view what) {
    skip_white();
    if (!text.starts_with(what)) return false;
    text.remove_prefix(what.size());
    return true;
  };
  if (!take("{") || !take("\"ph\"") || !take(":") || !take("\"") || text.size() < 2) return false;
  return text[1] == '"' && text[0] != 'X' && text[0] != 'B' && text[0] != 'E' && text[0] != 'M';
}

}  // namespace gpudiag::kineto_file
