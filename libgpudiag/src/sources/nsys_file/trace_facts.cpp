// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/trace_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "sources/text.hpp"

namespace gpudiag::nsys_file {
namespace {

struct ExpectedTable {
  const char* name;
  const char* without;  ///< what is not known then
};

constexpr ExpectedTable kExpected[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", "no kernels: was it recorded with --trace=cuda?"},
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     "no CUDA calls: what the host did while the device was idle, and what launched an operation, is not known"},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "no copies: there were none, or they were not recorded"},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "no memsets: there were none, or they were not recorded"},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "what a wait of the host waited for is not known"},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT",
     "which work an event stands for is not known, and so not what a stream or the host waited for by it "
     "(nsys profile --cuda-event-trace=true tells)"},
    {"NVTX_EVENTS",
     "no ranges: iterations, data loading and checkpoints have no names (nsys profile --trace=cuda,nvtx records them)"},
    {"TARGET_INFO_SESSION_START_TIME", "the time of day is not known"},
    {"TARGET_INFO_GPU", "the devices' names are not known"},
};

/// Of META_DATA_EXPORT and its like.
std::optional<std::string> value_of(Builder& builder, std::string_view table, std::string_view name) {
  RowReader rows{builder.database, builder.reading, table, {{"name"}, {"value"}}};
  std::optional<std::string> value;
  while (rows.next())
    if (rows.bytes(0) == name) value = repaired_text(rows.bytes(1).substr(0, 256));
  return value;
}

std::int64_t number_or_0(const std::optional<std::string>& text) {
  std::int64_t number = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

bool is_empty(Database& database, std::string_view table) {
  auto row = database.prepare(fmt::format("SELECT 1 FROM {} LIMIT 1", quoted(table)));
  return row && !row->step() && !row->failed();  // what cannot be read was said already
}

void say_what_lacks(Builder& builder) {
  for (const ExpectedTable& table : kExpected) {
    const bool there = builder.database.has_table(table.name);
    if (there && !is_empty(builder.database, table.name)) continue;
    builder.reading.unknown.push_back(
        fmt::format("{} is {}: {}", table.name, there ? "empty" : "absent", table.without));
  }
}

void read_devices(Builder& builder) {
  // One process's device 0 may be another's device 3.
  std::map<std::int64_t, std::string> names;
  RowReader devices{builder.database, builder.reading, "TARGET_INFO_GPU", {{"id"}, {"name"}, {"cuDevice"}}};
  while (devices.next()) {
    const auto id = devices.integer(0);
    if (!id || devices.bytes(1).empty()) continue;
    names.emplace(*id, repaired_text(devices.bytes(1).substr(0, 256)));
    const auto cuda = devices.integer(2);
    builder.contents.info.devices.push_back({DeviceId{fold_id(cuda.value_or(*id))}, names.at(*id), {}});
  }
  RowReader used{builder.database, builder.reading, "TARGET_INFO_CUDA_DEVICE", {{"gpuId"}, {"cudaId"}, {"pid"}}};
  while (used.next()) {
    const auto name = names.find(used.integer(0).value_or(-1));
    const auto pid = std::ranges::find(builder.pids(), used.integer(2).value_or(-1));
    if (name == names.end() || pid == builder.pids().end() || !used.integer(1)) continue;
    const ProcessId process{static_cast<std::uint32_t>(pid - builder.pids().begin())};
    builder.contents.info.devices.push_back({DeviceId{fold_id(*used.integer(1))}, name->second, process});
  }
}

void read_host(Builder& builder) {
  RowReader rows{builder.database, builder.reading, "TARGET_INFO_SYSTEM_ENV", {{"name"}, {"value"}}};
  while (rows.next())
    if (rows.bytes(0) == "Hostname") builder.contents.info.host = repaired_text(rows.bytes(1).substr(0, 256));
}

/// Such as that not all events may have been collected.
void read_warnings(Builder& builder) {
  constexpr std::size_t kShown = 5;
  Enumerations::ById<bool> grave;
  RowReader levels{builder.database, builder.reading, "ENUM_DIAGNOSTIC_SEVERITY_LEVEL", {{"id"}, {"label"}}};
  while (levels.next())
    if (const auto id = levels.integer(0)) {
      const std::string_view label = levels.bytes(1);
      grave[*id] = label.starts_with("Warning") || label.starts_with("Error") || label.starts_with("Fatal");
    }
  std::vector<std::string> said;
  RowReader rows{builder.database, builder.reading, "DIAGNOSTIC_EVENT", {{"severity"}, {"text"}}};
  while (rows.next()) {
    const auto severity = rows.integer(0);
    if (!severity || grave.count(*severity) == 0 || !grave[*severity] || said.size() == kShown) continue;
    std::string text = repaired_text(rows.bytes(1).substr(0, 300));
    if (std::ranges::find(said, text) == said.end()) said.push_back(std::move(text));
  }
  for (const std::string& text : said)
    builder.reading.unknown.push_back(fmt::format("Nsight Systems warned while it recorded: {}", text));
}

void say_which_schema(Builder& builder) {
  const auto version = value_of(builder, "META_DATA_EXPORT", "EXPORT_SCHEMA_VERSION");
  if (version && !version->starts_with("3."))
    builder.reading.unknown.push_back(fmt::format(
        "the export's schema is {}, and 3 is what this reader was made for: what has other names now is missed", *version));
}

}  // namespace

bool is_nsys_export(const Database& database) {
  constexpr auto kAny = std::to_array<std::string_view>(
      {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY",
       "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT"});
  return std::ranges::any_of(kAny, [&](std::string_view table) { return database.has_table(table); });
}

void read_contexts(Builder& builder) {
  RowReader rows{builder.database, builder.reading, "TARGET_INFO_CUDA_CONTEXT_INFO",
                 {{"processId"}, {"contextId"}, {"deviceId"}}};
  while (rows.next()) {
    const auto pid = rows.integer(0);
    const auto context = rows.integer(1);
    const auto device = rows.integer(2);
    if (!pid || !context || !device) continue;
    for (std::size_t i = 0; i < builder.pids().size(); ++i)
      if (builder.pids()[i] == *pid)
        builder.set_device(ProcessId{static_cast<std::uint32_t>(i)}, ContextId{fold_id(*context)},
                           DeviceId{fold_id(*device)});
  }
}

std::int64_t unix_time_of_zero(Builder& builder) {
  RowReader rows{builder.database, builder.reading, "TARGET_INFO_SESSION_START_TIME", {{"utcEpochNs"}}};
  std::int64_t start = 0;
  while (rows.next()) start = rows.integer(0).value_or(start);
  // An export can be told to write times of day, or to move all times.
  if (value_of(builder, "META_DATA_EXPORT", "EXPORT_PARAM_TIME_NORMALIZE") == "true") return 0;
  const std::int64_t moved = number_or_0(value_of(builder, "META_DATA_EXPORT", "EXPORT_PARAM_TIME_SHIFT"));
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(moved));
}

void read_facts(Builder& builder) {
  say_which_schema(builder);
  say_what_lacks(builder);
  read_warnings(builder);
  read_host(builder);
  read_devices(builder);
}

}  // namespace gpudiag::nsys_file
