// SPDX-License-Identifier: Apache-2.0
// Flow: trace file -> [sources/kineto_file] -> record.
// One event of the file with the fields we use, still as text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace gpudiag::kineto_file {

/// Fields of an event and of its `args`. `External id` is not among them: it numbers operators, in
/// another space than correlation ids, and joins nothing here.
enum class Field : std::uint8_t {
  kPhase,
  kCategory,
  kName,
  kProcess,
  kThread,
  kTime,
  kDuration,
  kCorrelation,
  kDevice,
  kContext,
  kStream,
  kBytes,
  kGraph,
  kGrid,
  kBlock,
  kSyncKind,
  kWaitStream,
  kWaitCorrelation,
  kWaitEvent,
  kCollective,
  kElementsIn,
  kElementsOut,
  kElementType,
  kGroupSize,
  kGroupName,
  kGroupRanks,
  kSequence,
  kRankFrom,
  kRankTo,
};
inline constexpr std::size_t kFieldCount = 29;

/// JSON tokens as written (strings with their quotes), empty where absent; of a key that stands
/// twice, the last. They point into the text of the event or of the parser.
struct TraceEvent {
  std::array<std::string_view, kFieldCount> fields{};

  std::string_view operator[](Field field) const { return fields[static_cast<std::size_t>(field)]; }
};

enum class ParseOutcome { kParsed, kRepaired, kBroken };

/// Parses events one by one. Not thread-safe.
class EventParser {
 public:
  EventParser();
  ~EventParser();

  /// `text` is one event, behind which kScanPadding bytes must be readable. What `event` points to
  /// stays until the next call. kRepaired: it held raw control characters or bad UTF-8, which are
  /// U+FFFD now.
  ParseOutcome parse(std::string_view text, TraceEvent& event);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether an event can be skipped unread: its first key is its phase, and the phase is none that
/// becomes a record (flow arrows, instants, counters: half of many traces).
bool is_uninteresting(std::string_view text);

}  // namespace gpudiag::kineto_file
