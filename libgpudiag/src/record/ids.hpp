// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// Strong ids. Streams, correlations and threads mean something only within their process (and
// streams within their context too), so no two id spaces share a type and none converts silently.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gpudiag {

/// One process of the job, numbered densely by the source in order of appearance; 0 in a live run.
enum class ProcessId : std::uint32_t {};
/// Host thread: the operating system's thread id where known, else any number unique in the process.
enum class ThreadId : std::uint32_t {};
enum class DeviceId : std::uint32_t {};
enum class ContextId : std::uint32_t {};
enum class StreamId : std::uint32_t {};
/// Joins an API call to its operations and sync records; 32 bits, wraps, unique in a process only.
enum class CorrelationId : std::uint32_t {};
/// Executable graph; 0 where an operation came from no graph.
enum class GraphId : std::uint32_t {};
/// A CUDA event, as the driver numbers it; 0 is none.
enum class EventId : std::uint64_t {};
/// An interned string of a NameTable; 0 is the empty string.
enum class NameId : std::uint32_t {};

inline constexpr DeviceId kNoDevice{0xffffffffu};
inline constexpr StreamId kNoStream{0xffffffffu};
inline constexpr CorrelationId kNoCorrelation{0};
inline constexpr NameId kNoName{0};

template <typename Id>
constexpr auto raw(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace gpudiag
