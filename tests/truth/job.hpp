// SPDX-License-Identifier: Apache-2.0
// Flow: [job] -> program -> machine -> tracer -> engine under test; judge compares.
// A training job with its shape and its troubles, written out as a Program.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string_view>

#include "attribution/cause.hpp"
#include "program.hpp"

namespace gpudiag::truth {

/// Something that may be wrong with a job and can be left out of it.
enum class Trouble : std::uint8_t {
  kLoaderInline,       ///< the batch is made in the training thread, inside the loader's __next__
  kLoaderWorkers,      ///< worker processes make batches too slowly; the training thread waits in
                       ///< __next__
  kSync,               ///< `.item()` after each kernel of the optimizer
  kDeviceSync,         ///< cudaDeviceSynchronize before the forward pass
  kLaunch,             ///< launches and the code between them take time at all
  kLoggerLabelled,     ///< host code inside a range that a user's rule names
  kLoggerAnonymous,    ///< host code that nothing names
  kMalloc,             ///< cudaMalloc and cudaFree in the loop
  kCheckpoint,         ///< torch.save each fourth iteration
  kBlockingCopies,     ///< small copies to the device throughout the forward pass that block
  kEventSync,          ///< the host waits for an event just recorded, before the optimizer
  kHostMalloc,         ///< pinned memory allocated in the loop
  kGarbageCollection,  ///< pauses of the interpreter during the forward pass, as a hook reports
                       ///< them
  kEpochStart,  ///< the first batch of each short epoch comes late, as when workers are started
                ///< anew
  kStreamSync,  ///< the host waits for the main stream before the optimizer
  kRetry,       ///< an allocation that fails, after which caches are freed and it is tried again
  kHooked,      ///< host time of the shape's own choice of cause and sub-cause, as a hook tells of it
};
/// Those that pairs and random jobs are drawn from.
inline constexpr std::size_t kDrawnTroubles = 14;
inline constexpr std::array<std::string_view, 17> kTroubleNames{
    "loader_inline",   "loader_workers",   "sync",   "device_sync", "launch",
    "logger_labelled", "logger_anonymous", "malloc", "checkpoint",  "blocking_copies",
    "event_sync",      "host_malloc",      "gc",     "epoch_start",
    "stream_sync",     "allocator_retry",  "hooked"};
constexpr std::string_view name_of(Trouble trouble) {
  return kTroubleNames[static_cast<std::size_t>(trouble)];
}
struct JobShape;
/// The category that should be charged for it; of kHooked the shape decides.
Cause cause_of(Trouble trouble);
Cause cause_of(Trouble trouble, const JobShape& shape);

using Troubles = std::set<Trouble>;

/// Rules for range names, as a user would give them.
inline constexpr std::array<std::string_view, 2> kRangeRules{"log_metrics=host:logging",
                                                             "load_batch=data_loading"};
/// The semaphore by which a batch is handed to the training thread.
inline constexpr std::uint32_t kBatchSemaphore = 0;
inline constexpr std::uint32_t kCheckpointEvery = 4;
inline constexpr std::uint32_t kEpoch = 5;  // iterations

/// What the job is like, troubles apart. Everything here is the same with and without them.
struct JobShape {
  std::uint64_t seed = 1;
  std::uint32_t iterations = 32;
  std::int64_t noise_percent = 6;

  std::uint32_t forward_kernels = 60;
  std::uint32_t backward_kernels = 100;
  std::uint32_t optimizer_kernels = 60;
  DurationNs forward_kernel = microseconds(40);
  DurationNs backward_kernel = microseconds(60);
  DurationNs optimizer_kernel = microseconds(30);
  DurationNs launch = microseconds(4);
  DurationNs dispatch = microseconds(6);
  DurationNs latency = DurationNs{3'200};
  std::uint32_t queue_depth = 1024;

  bool item_each_step = false;  ///< the loss is read at the end of the step
  bool item_through_pageable = false;
  bool autograd_thread = false;    ///< backward is launched by a thread of its own
  bool background_copier = false;  ///< a thread copies on its own stream and waits for events
  bool second_stream = false;  ///< every other forward kernel on a second stream, forked and joined
  bool prefetch_stream = false;     ///< the next batch is copied on a side stream
  bool prefetch_thread = false;     ///< a thread of the process loads and copies batches
  bool late_event = false;          ///< backward waits for a long kernel of a side stream
  bool pageable_batch = false;      ///< the batch is copied from pageable memory, which blocks
  bool tiny_copies = false;         ///< small pageable copies throughout the forward pass
  bool graphs = false;              ///< forward and backward are one graph launch each
  bool two_devices = false;         ///< the middle of the step runs on a second device
  bool wait_for_last_step = false;  ///< the host waits for the step before the last one's end
  std::int64_t vary_percent = 0;    ///< how much the work differs from step to step
  std::uint32_t idle_syncs = 0;     ///< synchronisations of a stream that never has work

  DurationNs inline_load = milliseconds(16);
  DurationNs worker_period = milliseconds(16);
  DurationNs logger = milliseconds(14);
  DurationNs malloc = microseconds(180);
  std::uint32_t mallocs = 6;
  DurationNs save = milliseconds(24);
  DurationNs host_malloc = milliseconds(5);
  DurationNs pause = milliseconds(7);
  DurationNs epoch_start = milliseconds(90);
  std::uint64_t batch_bytes = 4u << 20;
  DurationNs retry = milliseconds(8);
  Cause hooked_cause = Cause::kHost;
  SubCause hooked_sub_cause = SubCause::kCpu;
  DurationNs hooked = milliseconds(14);
};

/// The job without whatever the shape itself has of causes: waits that are there in any case. What
/// remains of a trouble in it is its cost when everything else has been removed.
JobShape without_waits(JobShape shape);

/// The job with those of the `possible` troubles that are `present`. A possible trouble that is
/// absent takes no time at all; one that is not even possible has its ordinary, small cost (a
/// loader that has the batch ready, a launch of a few microseconds).
Program write_job(const JobShape& shape, const Troubles& possible, const Troubles& present);

}  // namespace gpudiag::truth
