// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// Turns events into records, and learns from them which processes there are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/names.hpp"
#include "record/record.hpp"
#include "sources/api_class.hpp"
#include "sources/kineto_file/trace_event.hpp"
#include "sources/recorded/record_store.hpp"
#include "timeline/quality.hpp"

namespace gpudiag::kineto_file {

/// Where an event that was waited for had been recorded; from the args of `cuda_sync`.
struct RecordedEvent {
  std::uint64_t event = 0;
  StreamId stream = kNoStream;
  DeviceId device = kNoDevice;
};

/// Times of its records are those of the file, in nanoseconds. Not thread-safe.
class EventDecoder {
 public:
  explicit EventDecoder(NameTable& names) : names_{names} {}

  /// Adds what the event says; counts it as broken where it lacks what it must have.
  void decode(const TraceEvent& event);
  /// Begin events that no end event followed become records without an end.
  void finish();

  recorded::RecordStore& records() { return records_; }
  /// Raw process ids, by ProcessId.
  const std::vector<std::int64_t>& pids() const { return pids_; }
  /// By correlation of the call that recorded the event.
  const std::map<std::uint32_t, RecordedEvent>& recorded_events() const { return recorded_; }
  std::uint64_t broken() const { return broken_; }

 private:
  enum class Category : std::uint8_t {
    kNone,
    kKernel,
    kMemcpy,
    kMemset,
    kApi,
    kOperator,
    kOldOperator,
    kAnnotation,
    kPython,
    kSync,
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Lane = std::pair<std::int64_t, std::uint32_t>;  ///< process and thread or stream

  static Category category_of(std::string_view text);
  void fill(Record& record, Category category, const TraceEvent& event);
  void fill_host(Record& record, const TraceEvent& event);
  void fill_device(Record& record, const TraceEvent& event);
  void fill_sync(Record& record, const TraceEvent& event);
  void end_open_event(const TraceEvent& event);
  static Lane lane_of(const TraceEvent& event);
  NameId name_of(std::string_view token);
  const ApiTraits& traits_of(NameId name);
  ProcessId process_of(std::string_view token);

  NameTable& names_;
  recorded::RecordStore records_;
  std::unordered_map<std::string, NameId, TextHash, std::equal_to<>> names_by_token_;
  std::vector<std::optional<ApiTraits>> traits_;  ///< by NameId
  std::vector<std::int64_t> pids_;
  std::unordered_map<std::int64_t, ProcessId> processes_;  ///< by pid
  ProcessId last_process_{};                               ///< nearly always the next one too
  std::map<std::uint32_t, RecordedEvent> recorded_;
  std::map<Lane, std::vector<Record>> open_;
  std::uint64_t broken_ = 0;
};

}  // namespace gpudiag::kineto_file
