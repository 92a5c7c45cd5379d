// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include "action_writer.hpp"

namespace gpudiag::truth {

Cause cause_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::kLoaderInline:
    case Trouble::kLoaderWorkers:
    case Trouble::kEpochStart:
      return Cause::kDataLoading;
    case Trouble::kSync:
    case Trouble::kDeviceSync:
    case Trouble::kBlockingCopies:
    case Trouble::kEventSync:
    case Trouble::kStreamSync:
      return Cause::kSync;
    case Trouble::kLaunch:
      return Cause::kLaunchOverhead;
    case Trouble::kLoggerLabelled:
    case Trouble::kLoggerAnonymous:
    case Trouble::kGarbageCollection:
    case Trouble::kHooked:
      return Cause::kHost;
    case Trouble::kMalloc:
    case Trouble::kHostMalloc:
    case Trouble::kRetry:
      return Cause::kAllocation;
    case Trouble::kCheckpoint:
      return Cause::kCheckpoint;
  }
  return Cause::kUnknown;
}

Cause cause_of(Trouble trouble, const JobShape& shape) {
  return trouble == Trouble::kHooked ? shape.hooked_cause : cause_of(trouble);
}

namespace {

constexpr std::uint32_t kEventRing = 4;  // events that exist once an iteration are reused in turn
constexpr std::uint32_t kWorkers = 2;
constexpr DurationNs kOrdinaryFetch = microseconds(20);

enum StreamIndex : std::uint32_t {
  kMain,
  kSide,
  kCopies,
  kBackground,
  kIdle,
  kLate,
  kOther,
  kStreamCount
};
enum EventIndex : std::uint32_t {
  kFork,
  kJoin = kFork + kEventRing,
  kBatch = kJoin + kEventRing,
  kStepDone = kBatch + kEventRing,
  kLateDone = kStepDone + kEventRing,
  kToOther = kLateDone + kEventRing,
  kFromOther = kToOther + kEventRing,
  kCopied = kFromOther + kEventRing,
  kGradients,
  kEventCount,
};
enum SemaphoreIndex : std::uint32_t {
  kBatches = kBatchSemaphore,
  kSlots,
  kBackwardGo,
  kBackwardDone,
  kSemaphoreCount
};

class Writer : private ActionWriter {
 public:
  Writer(const JobShape& shape, const Troubles& possible, const Troubles& present)
      : ActionWriter(shape,
                     possible.contains(Trouble::kLaunch) && !present.contains(Trouble::kLaunch)),
        shape_(shape),
        possible_(possible),
        present_(present) {
    program_.queue_depth = shape.queue_depth;
    program_.devices = shape.two_devices ? 2 : 1;
    program_.events = kEventCount;
    program_.streams.assign(kStreamCount, Stream{});
    program_.streams[kBackground].foreground = false;
    program_.streams[kOther].device = shape.two_devices ? 1 : 0;
    program_.semaphores.assign(kSemaphoreCount, 0);
    program_.semaphores[kSlots] = shape.prefetch_thread ? 2 : 2 * kWorkers;
  }

  Program write() {
    Script main{"main", {}};
    Script autograd{"autograd", {}};
    for (std::uint32_t i = 0; i < shape_.iterations; ++i) {
      step(main, i);
      if (shape_.autograd_thread) autograd_step(autograd, i);
    }
    program_.scripts.push_back(std::move(main));
    if (shape_.autograd_thread) program_.scripts.push_back(std::move(autograd));
    if (shape_.prefetch_thread)
      program_.scripts.push_back(prefetch_thread());
    else if (has(Trouble::kLoaderWorkers))
      for (std::uint32_t w = 0; w < kWorkers; ++w) program_.scripts.push_back(worker(w));
    if (shape_.background_copier) program_.scripts.push_back(background());
    return std::move(program_);
  }

 private:
  bool may(Trouble trouble) const { return possible_.contains(trouble); }
  bool has(Trouble trouble) const { return present_.contains(trouble); }
  bool may_load_slowly() const {
    return may(Trouble::kLoaderInline) || may(Trouble::kLoaderWorkers) || may(Trouble::kEpochStart);
  }
  // What the work of an iteration is multiplied by; the same in every part of the step.
  DurationNs varied(DurationNs length, std::uint32_t iteration) const {
    const DurationNs scale =
        noise("workload", iteration).around(DurationNs{1000}, shape_.vary_percent);
    return {length.ns * scale.ns / 1000};
  }
  Noise noise(std::string_view purpose, std::uint32_t iteration) const {
    return {shape_.seed, purpose, iteration};
  }

  // Parts of a step ----------------------------------------------------------------------------
  void step(Script& on, std::uint32_t i) {
    if (shape_.wait_for_last_step && i >= 2) event_sync(on, kStepDone + (i - 2) % kEventRing);
    fetch(on, i);
    if (has(Trouble::kHooked)) hooked(on, i);
    if (has(Trouble::kDeviceSync))
      on.actions.push_back({.what = Do::kDeviceSync, .host = microseconds(2)});
    upload(on, i);
    if (shape_.late_event) start_late_work(on, i);
    forward(on, i);
    if (shape_.autograd_thread) {
      put(on, kBackwardGo);
      take(on, kBackwardDone);
    } else {
      backward(on, i);
    }
    if (may(Trouble::kEventSync)) record(on, kGradients, kMain);
    if (has(Trouble::kEventSync)) event_sync(on, kGradients);
    if (has(Trouble::kStreamSync)) stream_sync(on, kMain);
    optimizer(on, i);
    record(on, kStepDone + i % kEventRing, kMain);
    if (shape_.item_each_step) item(on, kMain);
    logger(on, i);
    if (has(Trouble::kCheckpoint) && i % kCheckpointEvery == kCheckpointEvery - 1)
      checkpoint(on, i);
    // A moment on both sides, so that no call begins at the very nanosecond of the mark.
    work(on, microseconds(1));
    on.actions.push_back({.what = Do::kMark});
    work(on, microseconds(1));
  }

  void start_epoch(Script& on) {
    enter(on, "load_batch", RangeSource::kAnnotation);
    work(on, shape_.epoch_start);
    leave(on);
  }

  void fetch(Script& on, std::uint32_t i) {
    if (has(Trouble::kEpochStart) && i % kEpoch == 0) start_epoch(on);
    const bool by_others = shape_.prefetch_thread || has(Trouble::kLoaderWorkers);
    enter(on,
          by_others ? "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
                    : "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
          RangeSource::kAnnotation);
    if (by_others)
      take(on, kBatches);
    else if (has(Trouble::kLoaderInline))
      work(on, noise("inline", i).around(shape_.inline_load, shape_.noise_percent));
    if (!may_load_slowly()) work(on, kOrdinaryFetch);
    leave(on);
    if (shape_.prefetch_thread)
      put(on, kSlots);
    else if (has(Trouble::kLoaderWorkers))
      put(on, kSlots);
  }

  void upload(Script& on, std::uint32_t i) {
    if (shape_.prefetch_thread) {
      stream_wait(on, kMain, kBatch + i % kEventRing);
    } else if (shape_.prefetch_stream) {
      if (i > 0) stream_wait(on, kMain, kBatch + (i - 1) % kEventRing);
      copy(on, kCopies, CopyKind::kHostToDevice, shape_.batch_bytes, false, false);
      record(on, kBatch + i % kEventRing, kCopies);
    } else {
      enter(on, "aten::to", RangeSource::kOperator);
      copy(on, kMain, CopyKind::kHostToDevice, shape_.batch_bytes, shape_.pageable_batch,
           shape_.pageable_batch);
      leave(on);
    }
  }

  void start_late_work(Script& on, std::uint32_t i) {
    Noise n = noise("late", i);
    const std::int64_t forward_ns = shape_.forward_kernels * shape_.forward_kernel.ns;
    kernel(on, kLate, DurationNs{forward_ns + 1'500'000}, n, "aten::late");
    record(on, kLateDone + i % kEventRing, kLate);
  }

  void forward(Script& on, std::uint32_t i) {
    Noise n = noise("forward", i);
    if (has(Trouble::kMalloc)) allocate(on, Do::kMalloc, i);
    if (has(Trouble::kRetry)) retry(on, i);
    if (has(Trouble::kHostMalloc))
      on.actions.push_back({.what = Do::kHostMalloc, .host = shape_.host_malloc});
    if (has(Trouble::kGarbageCollection)) collect_garbage(on, i);
    if (shape_.graphs)
      return graph(on, kMain, shape_.forward_kernels, varied(shape_.forward_kernel, i), n);
    if (shape_.second_stream) fork(on, i);
    for (std::uint32_t k = 0; k < shape_.forward_kernels; ++k) {
      const bool aside = shape_.second_stream && k % 2 == 1;
      kernel(on, aside ? kSide : kMain, varied(shape_.forward_kernel, i), n, "aten::linear");
      if (k < shape_.idle_syncs) stream_sync(on, kIdle);
      if (may(Trouble::kBlockingCopies) && k % 4 == 0) small_copy(on);
      if (shape_.tiny_copies && k % 4 == 0)
        copy(on, kMain, CopyKind::kHostToDevice, 1024, true, false);
    }
    if (shape_.second_stream) join(on, i);
  }

  // The whole time of a call that blocks is its trouble's; what is left without it is the copy.
  void small_copy(Script& on) {
    const bool blocks = has(Trouble::kBlockingCopies);
    copy(on, kMain, CopyKind::kHostToDevice, 2048, true, blocks,
         blocks ? microseconds(5) : DurationNs{});
  }

  void fork(Script& on, std::uint32_t i) {
    record(on, kFork + i % kEventRing, kMain);
    stream_wait(on, kSide, kFork + i % kEventRing);
  }
  void join(Script& on, std::uint32_t i) {
    record(on, kJoin + i % kEventRing, kSide);
    stream_wait(on, kMain, kJoin + i % kEventRing);
  }

  void backward(Script& on, std::uint32_t i) {
    Noise n = noise("backward", i);
    if (shape_.late_event) stream_wait(on, kMain, kLateDone + i % kEventRing);
    if (shape_.two_devices) {
      record(on, kToOther + i % kEventRing, kMain);
      stream_wait(on, kOther, kToOther + i % kEventRing);
      for (std::uint32_t k = 0; k < shape_.backward_kernels / 2; ++k)
        kernel(on, kOther, varied(shape_.backward_kernel, i), n,
               "autograd::engine::evaluate_function: MmBackward0");
      record(on, kFromOther + i % kEventRing, kOther);
      stream_wait(on, kMain, kFromOther + i % kEventRing);
    }
    if (shape_.graphs)
      return graph(on, kMain, shape_.backward_kernels, varied(shape_.backward_kernel, i), n);
    for (std::uint32_t k = 0; k < shape_.backward_kernels; ++k) {
      kernel(on, kMain, varied(shape_.backward_kernel, i), n,
             "autograd::engine::evaluate_function: MmBackward0");
      if (shape_.forward_kernels + k < shape_.idle_syncs) stream_sync(on, kIdle);
    }
  }

  void autograd_step(Script& on, std::uint32_t i) {
    take(on, kBackwardGo);
    backward(on, i);
    put(on, kBackwardDone);
  }

  void optimizer(Script& on, std::uint32_t i) {
    Noise n = noise("optimizer", i);
    enter(on, "Optimizer.step#AdamW.step", RangeSource::kAnnotation);
    for (std::uint32_t k = 0; k < shape_.optimizer_kernels; ++k) {
      kernel(on, kMain, shape_.optimizer_kernel, n, "aten::_fused_adamw_");
      if (has(Trouble::kSync)) item(on, kMain);
    }
    leave(on);
    if (has(Trouble::kMalloc)) allocate(on, Do::kFree, i);
  }

  void allocate(Script& on, Do what, std::uint32_t i) {
    Noise n = noise(what == Do::kMalloc ? "malloc" : "free", i);
    for (std::uint32_t k = 0; k < shape_.mallocs; ++k)
      on.actions.push_back({.what = what, .host = n.around(shape_.malloc, 20)});
  }

  // A caching allocator out of memory: the failure, the release of its caches, and the second try.
  void retry(Script& on, std::uint32_t i) {
    Noise n = noise("retry", i);
    on.actions.push_back({.what = Do::kMalloc, .host = n.around(microseconds(60), 20), .failed = true});
    for (int k = 0; k < 4; ++k)
      on.actions.push_back({.what = Do::kFree, .host = n.around({shape_.retry.ns / 5}, 20)});
    on.actions.push_back({.what = Do::kMalloc, .host = n.around({shape_.retry.ns / 5}, 20)});
  }

  void hooked(Script& on, std::uint32_t i) {
    on.actions.push_back({.what = Do::kEnter,
                          .name = program_.name("hooked"),
                          .range = RangeSource::kHook,
                          .cause = shape_.hooked_cause,
                          .sub_cause = shape_.hooked_sub_cause});
    work(on, noise("hooked", i).around(shape_.hooked, shape_.noise_percent));
    leave(on);
  }

  void collect_garbage(Script& on, std::uint32_t i) {
    on.actions.push_back({.what = Do::kEnter,
                          .name = program_.name("gc"),
                          .range = RangeSource::kHook,
                          .cause = Cause::kHost,
                          .sub_cause = SubCause::kGarbageCollection});
    work(on, noise("gc", i).around(shape_.pause, shape_.noise_percent));
    leave(on);
  }

  void logger(Script& on, std::uint32_t i) {
    const DurationNs length = noise("logger", i).around(shape_.logger, shape_.noise_percent);
    if (has(Trouble::kLoggerAnonymous)) work(on, length);
    if (!has(Trouble::kLoggerLabelled)) return;
    enter(on, "log_metrics", RangeSource::kAnnotation);
    work(on, length);
    leave(on);
  }

  void checkpoint(Script& on, std::uint32_t i) {
    enter(on, "torch.save", RangeSource::kAnnotation);
    for (int k = 0; k < 4; ++k) {
      copy(on, kMain, CopyKind::kDeviceToHost, 128u << 10, true, true);
      work(on, noise("save", i).around(DurationNs{shape_.save.ns / 4}, shape_.noise_percent));
    }
    leave(on);
  }

  // Other threads ------------------------------------------------------------------------------
  Script worker(std::uint32_t index) const {
    Script script{"worker", {}, false};
    for (std::uint32_t i = index; i < shape_.iterations; i += kWorkers) {
      take(script, kSlots);
      work(script,
           noise("worker", i).around({shape_.worker_period.ns * kWorkers}, shape_.noise_percent));
      put(script, kBatches);
    }
    return script;
  }

  Script prefetch_thread() {
    Script script{"prefetch", {}};
    for (std::uint32_t i = 0; i < shape_.iterations; ++i) {
      take(script, kSlots);
      enter(script, "load_batch", RangeSource::kNvtx);
      if (has(Trouble::kLoaderInline) || has(Trouble::kLoaderWorkers))
        work(script, noise("inline", i).around(shape_.inline_load, shape_.noise_percent));
      leave(script);
      copy(script, kCopies, CopyKind::kHostToDevice, shape_.batch_bytes, false, false);
      record(script, kBatch + i % kEventRing, kCopies);
      put(script, kBatches);
    }
    return script;
  }

  // Snapshots what the last step has computed, and waits for the copy.
  Script background() const {
    Script script{"background", {}, true, true};
    for (std::uint32_t i = 0; i < kEventRing; ++i) {
      script.actions.push_back({.what = Do::kStreamWait,
                                .host = microseconds(1),
                                .stream = kBackground,
                                .event = kStepDone + i});
      script.actions.push_back({.what = Do::kCopy,
                                .host = microseconds(5),
                                .latency = microseconds(2),
                                .count = 1u << 20,
                                .stream = kBackground,
                                .copy = CopyKind::kDeviceToHost});
      script.actions.push_back(
          {.what = Do::kRecord, .host = microseconds(1), .stream = kBackground, .event = kCopied});
      event_sync(script, kCopied);
      work(script, milliseconds(3));
    }
    return script;
  }

  const JobShape& shape_;
  const Troubles& possible_;
  const Troubles& present_;
};

}  // namespace

JobShape without_waits(JobShape shape) {
  shape.item_each_step = false;
  shape.wait_for_last_step = false;
  shape.pageable_batch = false;
  shape.idle_syncs = 0;
  return shape;
}

Program write_job(const JobShape& shape, const Troubles& possible, const Troubles& present) {
  return Writer(shape, possible, present).write();
}

}  // namespace gpudiag::truth
