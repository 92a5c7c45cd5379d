// SPDX-License-Identifier: Apache-2.0
#include "report/session_json.hpp"

#include <fmt/format.h>

#include "report/json_writer.hpp"
#include "report/ledger_json.hpp"

namespace gpudiag {
namespace {

JsonWriter& begin_event(JsonWriter& json, std::string_view event, std::uint32_t rank) {
  json.begin_object().field("schema", kSessionSchema).field("event", event);
  return json.field("rank", rank);
}

void write_device(JsonWriter& json, const DeviceInfo& device) {
  json.begin_object().field("device", raw(device.device)).field("name", device.name).end_object();
}

}  // namespace

std::string session_start_json(const SessionInfo& info) {
  std::string line;
  JsonWriter json{line};
  begin_event(json, "start", info.rank);
  // A string: the number exceeds 2^53, above which readers of JSON round.
  json.field("origin_unix_ns", fmt::format("{}", info.origin_unix_ns));
  json.field("host", info.host).field("pid", info.pid).field("source", info.source);
  json.field("version", info.version).field("torch", info.torch).key("devices").begin_array();
  for (const DeviceInfo& device : info.devices) write_device(json, device);
  json.end_array().key("options").begin_object();
  for (const auto& [name, text] : info.options) json.field(name, text);
  json.end_object().end_object();
  return line;
}

std::string session_device_json(std::uint32_t rank, const DeviceInfo& device) {
  std::string line;
  JsonWriter json{line};
  begin_event(json, "device", rank).field("device", raw(device.device));
  json.field("name", device.name).end_object();
  return line;
}

std::string session_note_json(std::uint32_t rank, const SessionNote& note) {
  std::string line;
  JsonWriter json{line};
  begin_event(json, "note", rank).field("at_ns", note.at);
  json.field("code", note.code).field("text", note.text).end_object();
  return line;
}

std::string session_quality_json(std::uint32_t rank, TimePoint at, const Quality& quality) {
  std::string line;
  JsonWriter json{line};
  begin_event(json, "quality", rank).field("at_ns", at).key("quality");
  write_quality(json, quality);
  json.end_object();
  return line;
}

std::string session_end_json(std::uint32_t rank, const SessionEnd& end) {
  std::string line;
  JsonWriter json{line};
  begin_event(json, "end", rank).field("at_ns", end.at).field("iterations", end.iterations);
  json.field("own_ns", end.own).field("own_drain_ns", end.own_drain).key("quality");
  write_quality(json, end.quality);
  json.end_object();
  return line;
}

}  // namespace gpudiag
