// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> [record] -> timeline -> attribution -> report.
// The one record. Every source, live or recorded, emits this type and nothing else, so that a trace
// file exercises the very code that runs inside a job.
#pragma once

#include <cstdint>
#include <type_traits>

#include "record/ids.hpp"
#include "record/time.hpp"

namespace gpudiag {

enum class RecordKind : std::uint8_t {
  kApiCall,      ///< a CUDA call on a host thread; `api`, thread, correlation, name
  kKernel,       ///< operation; device, context, stream, correlation, graph, name, value = launch shape hash
  kMemcpy,       ///< operation; `copy`, value = bytes
  kMemset,       ///< operation; value = bytes
  kGraph,        ///< operation: a graph recorded only as a whole
  kSync,         ///< what a wait waited for; `sync`, stream, correlation, value = EventId,
                 ///< value2 = correlation of the event's record call (0: the latest record of it)
  kEventRecord,  ///< an event was recorded on a stream; stream, correlation, value = EventId
  kRange,        ///< what a host thread was inside of; `range`, thread, name
  kMark,         ///< an iteration ends here and the next begins; `mark`, thread, name = label,
                 ///< value = index or kNoIndex; start == end
  kGap,          ///< we recorded nothing in [start, end) (`gap` says why)
  kLost,         ///< value records were lost before `start`; end == start
  kOwn,          ///< [start, end) on `thread` was spent in our own code; may lie inside an API call
  kTick,         ///< everything that ended before `start` has been delivered; drives time-outs
  kHostSample,   ///< what a thread was found at when it was looked at, at `end`; `start` is the look before;
                 ///< `state`, thread, name = where it is held up, value = ns it ran since `start`,
                 ///< value2 = ns it was ready to run without a processor
};

/// What a look at a thread, or at a child process, found it at.
enum class HostState : std::uint8_t {
  kUnknown,   ///< blocked, and nothing says in what
  kReady,     ///< runs, or could run; `value` and `value2` say which
  kLock,      ///< in a futex: a mutex, the GIL, a condition variable
  kNetwork,   ///< in a call on a socket
  kDisk,      ///< in a call on a file or a file system, or uninterruptible
  kFault,     ///< uninterruptible outside of any call: a page is fetched
  kPipe,      ///< in a call on a pipe: a queue between processes
  kLog,       ///< in a write to standard output or standard error
  kAsleep,    ///< in a call that sleeps
  kBorn,      ///< of a child process: it was made at `end`
  kGone,      ///< of a child process: it has ended since `start`
};

/// What a CUDA call does to its caller and to the device.
enum class ApiClass : std::uint8_t {
  kOther,        ///< returns at once
  kLaunch,       ///< kernel launch
  kGraphLaunch,
  kMemcpy,       ///< synchronous form: may block
  kMemcpyAsync,  ///< may block all the same when memory is pageable
  kMemset,
  kStreamSync,
  kDeviceSync,
  kEventSync,
  kEventRecord,
  kStreamWait,
  kQuery,        ///< cudaEventQuery, cudaStreamQuery
  kMalloc,       ///< device memory, synchronising
  kFree,
  kHostMalloc,   ///< pinned memory, registering included
  kHostFree,
  kPoolMalloc,   ///< stream-ordered, does not synchronise
  kPoolFree,
  kCapture,      ///< stream capture begin and end
  kInstantiate,  ///< graph instantiate, update
  kModule,       ///< module and library loading, function look-up
};

enum class CopyKind : std::uint8_t { kUnknown, kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeer, kHostToHost };

enum class SyncKind : std::uint8_t { kUnknown, kEvent, kStreamWaitsEvent, kStream, kContext };

/// Where a range came from: decides what it may be evidence for.
enum class RangeSource : std::uint8_t {
  kUser,        ///< gpudiag's own range API; `cause` may be set
  kNvtx,
  kAnnotation,  ///< record_function and the like
  kOperator,    ///< framework operator (aten::…)
  kPython,      ///< Python frame
  kHook,        ///< one of gpudiag's framework hooks; `cause` is set
};

/// In falling order of trust.
enum class MarkSource : std::uint8_t { kStep, kProfilerStep, kPattern, kOptimizer, kLaunchPattern, kWindow };

enum class GapReason : std::uint8_t { kStoodAside, kShed, kStopped };

namespace record_flag {
inline constexpr std::uint16_t kUntimed = 1u << 0;       ///< the tracer could not time it (start = end = 0)
inline constexpr std::uint16_t kNegative = 1u << 1;      ///< end before start
inline constexpr std::uint16_t kForeignClock = 1u << 2;  ///< far outside the session
inline constexpr std::uint16_t kIncomplete = 1u << 3;    ///< no end was recorded
inline constexpr std::uint16_t kDefective = kUntimed | kNegative | kForeignClock | kIncomplete;
inline constexpr std::uint16_t kPageable = 1u << 4;      ///< copy from or to pageable host memory
inline constexpr std::uint16_t kAsync = 1u << 5;         ///< copy was asked for asynchronously
inline constexpr std::uint16_t kDriverApi = 1u << 6;     ///< driver call (cu…); may nest in a runtime call
inline constexpr std::uint16_t kFailed = 1u << 7;        ///< the call returned an error
inline constexpr std::uint16_t kBlocksNever = 1u << 8;   ///< known not to wait for the device
inline constexpr std::uint16_t kEvaluation = 1u << 9;    ///< of a mark: what ends here was evaluation
/// Of a range: its thread neither gave the processor away inside nor used it for most of the time. So
/// it waited for a processor, not for what the range is named after.
inline constexpr std::uint16_t kNotBlocked = 1u << 10;
/// Of a host sample: of a child process, `thread` is its id; it makes batches, as far as is known.
inline constexpr std::uint16_t kWorker = 1u << 11;
/// Of a host sample: in the last tenth of a second hardly any processor that the job may use was free.
inline constexpr std::uint16_t kProcessorsFull = 1u << 12;
/// Of a host sample: it is known whether processors were free.
inline constexpr std::uint16_t kProcessorsKnown = 1u << 13;
/// Of a host sample: the children of this process could be listed, so that a worker would have been seen.
inline constexpr std::uint16_t kChildrenKnown = 1u << 14;
}  // namespace record_flag

inline constexpr std::uint64_t kNoIndex = ~std::uint64_t{0};

/// Plain data, written to recordings field by field. Fields that a kind does not use are at their
/// defaults. Thread safety: a value; share it as such.
struct Record {
  TimePoint start;
  TimePoint end;
  std::uint64_t value = 0;
  std::uint64_t value2 = 0;
  ProcessId process{};
  ThreadId thread{};
  DeviceId device = kNoDevice;
  ContextId context{};
  StreamId stream = kNoStream;
  CorrelationId correlation = kNoCorrelation;
  GraphId graph{};
  NameId name = kNoName;
  std::uint16_t flags = 0;
  RecordKind kind = RecordKind::kTick;
  ApiClass api = ApiClass::kOther;
  CopyKind copy = CopyKind::kUnknown;
  SyncKind sync = SyncKind::kUnknown;
  RangeSource range = RangeSource::kUser;
  MarkSource mark = MarkSource::kStep;
  GapReason gap = GapReason::kStoodAside;
  /// Cause and sub-cause of a range, as numbers of attribution/cause.hpp plus one; 0: look the name up.
  std::uint8_t cause = 0;
  std::uint8_t sub_cause = 0;
  HostState state = HostState::kUnknown;

  constexpr bool operator==(const Record&) const = default;
  constexpr bool has(std::uint16_t flag) const { return (flags & flag) != 0; }
  constexpr Interval interval() const { return {start, end}; }
  constexpr bool is_operation() const {
    return kind == RecordKind::kKernel || kind == RecordKind::kMemcpy || kind == RecordKind::kMemset ||
           kind == RecordKind::kGraph;
  }
};

static_assert(std::is_trivially_copyable_v<Record>);

}  // namespace gpudiag
