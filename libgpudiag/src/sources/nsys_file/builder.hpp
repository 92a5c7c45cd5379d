// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/nsys_file] -> record.
// What the readers of the tables share: names, processes, which context is on which device, and where
// records go.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sources/api_class.hpp"
#include "sources/nsys_file/enumerations.hpp"
#include "sources/nsys_file/row_reader.hpp"
#include "sources/nsys_file/strings.hpp"
#include "sources/recorded/contents.hpp"

namespace gpudiag::nsys_file {

/// A row refers to its thread or process by one number: hardware, virtual machine, process, thread.
struct GlobalId {
  explicit GlobalId(std::int64_t id) : bits{static_cast<std::uint64_t>(id)} {}
  std::uint64_t bits;

  /// The process with its machine: the same number of a process may be in use on two machines.
  std::uint64_t process() const { return bits >> 24; }
  std::int64_t pid() const { return static_cast<std::int64_t>(process() & 0xffffff); }
  ThreadId thread() const { return ThreadId{static_cast<std::uint32_t>(bits & 0xffffff)}; }
};

/// The name of a CUDA function and what it does.
struct ApiName {
  NameId name = kNoName;
  ApiTraits traits;
};

class Builder {
 public:
  Builder(Database& from, Reading& beside, recorded::Contents& into)
      : database{from}, reading{beside}, contents{into}, strings{from, beside}, enumerations{from, beside} {}

  Database& database;
  Reading& reading;
  recorded::Contents& contents;
  Strings strings;
  Enumerations enumerations;

  /// Nothing where the row does not say whose it is.
  std::optional<ProcessId> process_of(std::optional<std::int64_t> global_id);
  /// Raw process ids, by ProcessId.
  const std::vector<std::int64_t>& pids() const { return pids_; }

  /// The first of the texts `ids` that stands in the file; empty, and counted, where none does.
  NameId name_of(std::initializer_list<std::optional<std::int64_t>> ids);
  const ApiName& api_of(std::optional<std::int64_t> id);

  /// False, and counted, where the row has no start: then it cannot be a record.
  bool set_times(Record& record, std::optional<std::int64_t> start, std::optional<std::int64_t> end);
  void add(const Record& record) { contents.records.add(record); }
  void count_broken() { ++contents.quality[Defect::kBrokenEvent]; }

  void set_device(ProcessId process, ContextId context, DeviceId device);
  std::optional<DeviceId> device_of(ProcessId process, ContextId context) const;

 private:
  using Context = std::pair<std::uint32_t, std::uint32_t>;  ///< process, context

  std::unordered_map<std::int64_t, NameId> names_;
  std::unordered_map<std::int64_t, ApiName> apis_;
  std::vector<std::int64_t> pids_;
  std::unordered_map<std::uint64_t, ProcessId> processes_;  ///< by GlobalId::process()
  std::map<Context, DeviceId> devices_;
  Context last_context_{0xffffffffu, 0xffffffffu};  ///< nearly always the next one too
};

template <typename Id>
Id id_or(std::optional<std::int64_t> value, Id otherwise) {
  return value ? Id{fold_id(*value)} : otherwise;
}

}  // namespace gpudiag::nsys_file
