// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/trace_info.hpp"

#include <simdjson.h>

#include <string_view>

#include "sources/kineto_file/json_string.hpp"
#include "sources/kineto_file/number_text.hpp"
#include "sources/text.hpp"

namespace gpudiag::kineto_file {
namespace {

using simdjson::dom::element;

std::optional<std::uint32_t> small_number(element object, std::string_view key) {
  std::uint64_t value = 0;
  if (object[key].get(value) != simdjson::SUCCESS || value > 0xffffffffu) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

std::string text_at(element object, std::string_view key) {
  std::string_view text;
  if (object[key].get(text) != simdjson::SUCCESS) return {};
  return repaired_text(text);
}

void read_distributed(element value, RecordedInfo& info) {
  info.rank = small_number(value, "rank");
  info.world_size = small_number(value, "world_size");
  info.backend = text_at(value, "backend");
}

void read_devices(element value, RecordedInfo& info) {
  simdjson::dom::array devices;
  if (value.get(devices) != simdjson::SUCCESS) return;
  for (const element device : devices) {
    const auto id = small_number(device, "id");
    if (id) info.devices.push_back({DeviceId{*id}, text_at(device, "name"), {}});
  }
}

}  // namespace

TraceMembers read_members(const std::vector<std::pair<std::string, std::string>>& members) {
  TraceMembers read;
  simdjson::dom::parser parser;
  for (const auto& [key, text] : members) {
    if (key == "baseTimeNanoseconds") {
      read.base_ns = integer_of(text).value_or(0);
    } else if (key == "traceName") {
      read.info.trace_name = repaired_text(unescaped(unquoted(text)));
    } else if (key == "distributedInfo" || key == "deviceProperties") {
      element value;
      if (parser.parse(text).get(value) != simdjson::SUCCESS) continue;
      if (key == "distributedInfo")
        read_distributed(value, read.info);
      else
        read_devices(value, read.info);
    }
  }
  return read;
}

}  // namespace gpudiag::kineto_file
