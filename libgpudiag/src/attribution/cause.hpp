// SPDX-License-Identifier: Apache-2.0
// Flow: sources -> record -> timeline -> [attribution] -> report.
// Causes of idle time and their sub-causes, by the names used in code, JSON, metrics and docs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpudiag {

enum class Cause : std::uint8_t {
  kDataLoading, kCommunicationWait, kLaunchOverhead, kSync, kAllocation, kCheckpoint, kHost, kDependency, kUnknown,
};

inline constexpr std::array<std::string_view, 9> kCauseNames{
    "data_loading", "communication_wait", "launch_overhead", "sync", "allocation",
    "checkpoint",   "host",               "dependency",      "unknown"};
inline constexpr std::size_t kCauseCount = kCauseNames.size();

enum class SubCause : std::uint8_t {
  kNone,
  // data_loading
  kInline, kTooFewWorkers, kWorkersCpuBound, kUnpickling, kIoWait, kPageFaults, kWorkerStart,
  // sync
  kStreamSync, kDeviceSync, kEventSync, kBlockingCopy, kItem,
  // allocation
  kDeviceMalloc, kDeviceFree, kHostMalloc, kAllocatorRetry,
  // launch_overhead
  kManySmallKernels, kGraphLaunch, kDispatchGap,
  // host
  kGarbageCollection, kDispatch, kPython, kCpu, kLock, kDisk, kNetwork, kPreempted, kLogging, kCompile,
  // dependency
  kOtherDevice, kLaunchQueueFull, kOtherStream,
};

inline constexpr std::array<std::string_view, 33> kSubCauseNames{
    "", "inline", "too_few_workers", "workers_cpu_bound", "unpickling", "io_wait", "page_faults", "worker_start",
    "stream_sync", "device_sync", "event_sync", "blocking_copy", "item",
    "device_malloc", "device_free", "host_malloc", "allocator_retry",
    "many_small_kernels", "graph_launch", "dispatch_gap",
    "garbage_collection", "dispatch", "python", "cpu", "lock", "disk", "network", "preempted", "logging", "compile",
    "other_device", "launch_queue_full", "other_stream"};

constexpr std::string_view name_of(Cause cause) { return kCauseNames[static_cast<std::size_t>(cause)]; }
constexpr std::string_view name_of(SubCause sub_cause) { return kSubCauseNames[static_cast<std::size_t>(sub_cause)]; }

std::optional<Cause> cause_named(std::string_view name);
std::optional<SubCause> sub_cause_named(std::string_view name);

}  // namespace gpudiag
