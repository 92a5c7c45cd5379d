// SPDX-License-Identifier: Apache-2.0
#include "attribution/advice.hpp"

#include <algorithm>
#include <array>

namespace gpudiag {
namespace {

struct Advice {
  FindingCause cause;
  SubCause sub_cause;
  std::string_view text;   ///< with PyTorch's names
  std::string_view plain;  ///< without them; empty: `text` has none
};

using F = FindingCause;
using S = SubCause;

// The entry without a sub-cause serves those that have none of their own.
constexpr std::array kAdvice{
    Advice{F::kDataLoading, S::kNone,
           "The next batch is not there in time. Find out whether the workers compute (processors "
           "busy), wait for storage (processors idle) or are too few, and raise num_workers and "
           "prefetch_factor if processors are free; their fixes contradict each other otherwise.",
           "The next batch is not there in time. Find out whether the threads that make it compute "
           "(processors busy), wait for storage (processors idle) or are too few, and add threads and a "
           "longer queue of batches if processors are free; their fixes contradict each other otherwise."},
    Advice{F::kDataLoading, S::kInline,
           "Batches are made on the training thread itself: set num_workers of the DataLoader above 0 "
           "(4 to 8 for each GPU is a start), with pin_memory=True and persistent_workers=True.",
           "Batches are made on the training thread itself: make them on threads of their own (4 to 8 "
           "for each GPU is a start), a few steps ahead, into pinned memory."},
    Advice{F::kDataLoading, S::kTooFewWorkers,
           "Processors are free while the GPU waits for batches: raise num_workers until the wait is "
           "gone, then prefetch_factor; persistent_workers=True spares their start each epoch.",
           "Processors are free while the GPU waits for batches: add threads that make them until the "
           "wait is gone, then lengthen the queue of finished ones."},
    Advice{F::kDataLoading, S::kWorkersCpuBound,
           "The workers are at the limit of the processors, so more of them will not help: make "
           "samples cheaper (decode to the size used, cache what is decoded, vectorise per batch) or "
           "move transforms to the GPU, or give the job more processors.", ""},
    Advice{F::kDataLoading, S::kUnpickling,
           "Time goes into handing batches from the workers to the training process: return tensors "
           "(shared memory) rather than Python objects, collate in the worker, and make batches of "
           "few large tensors.",
           "Time goes into handing batches from the workers to the training process: pass them in shared "
           "memory, as few large blocks, and put them together in the worker."},
    Advice{F::kDataLoading, S::kIoWait,
           "The workers wait for storage: put the data on a local disk or in memory, read large files "
           "in sequence (shards) instead of many small ones, and let more workers wait at once.", ""},
    Advice{F::kDataLoading, S::kPageFaults,
           "Memory-mapped data is fetched a page at a time, which is slow on network storage: read it "
           "with buffered reads of a megabyte, or copy it to a local disk first.", ""},
    Advice{F::kDataLoading, S::kWorkerStart,
           "Workers are started anew, each epoch as a rule: persistent_workers=True keeps them; keep "
           "the data set object small, since each worker receives a copy.",
           "Workers are started anew, each epoch as a rule: keep them, and keep what each of them "
           "receives small."},

    Advice{F::kCommunicationWait, S::kNone,
           "The host waits inside a communication call: start collectives asynchronously and wait for "
           "them where the result is needed; keep barriers and store look-ups out of the loop; see "
           "which rank comes last.", ""},

    Advice{F::kLaunchOverhead, S::kNone,
           "The GPU finishes kernels faster than the host can launch them: launch fewer and larger "
           "ones (CUDA graphs, torch.compile, fused optimizers, larger batches).",
           "The GPU finishes kernels faster than the host can launch them: launch fewer and larger ones "
           "(CUDA graphs, fused kernels, larger batches)."},
    Advice{F::kLaunchOverhead, S::kManySmallKernels,
           "Very many kernels of a few microseconds each: fuse them (torch.compile, fused=True or "
           "foreach=True for the optimizer, a larger batch) or capture the step in a CUDA graph.",
           "Very many kernels of a few microseconds each: fuse them, enlarge the batch, or capture the "
           "step in a CUDA graph."},
    Advice{F::kLaunchOverhead, S::kGraphLaunch,
           "Launching the graphs themselves takes the time: join several small graphs into one, and "
           "upload a graph (cudaGraphUpload) before its first launch.", ""},
    Advice{F::kLaunchOverhead, S::kDispatchGap,
           "The framework's work between two launches is longer than the kernels: torch.compile or a "
           "CUDA graph takes it out of the loop; fewer and larger operations reduce it.",
           "The host's work between two launches is longer than the kernels: a CUDA graph takes it out "
           "of the loop; fewer and larger operations reduce it."},

    Advice{F::kSync, S::kNone,
           "The host waits for the GPU and thereby loses its lead: the launches that follow come late. "
           "Wait less often, or for an event recorded earlier.", ""},
    Advice{F::kSync, S::kStreamSync,
           "Replace cudaStreamSynchronize by an event that is waited for only where the result is "
           "used, a step later if it can be, so that the next launches are queued before the wait.", ""},
    Advice{F::kSync, S::kDeviceSync,
           "cudaDeviceSynchronize waits for every stream: take it out of the loop (it is often left "
           "from timing code), or wait for the one event that is needed.", ""},
    Advice{F::kSync, S::kEventSync,
           "The wait comes before the next work is queued: queue that first, or wait for the event of "
           "the step before (double buffering).", ""},
    Advice{F::kSync, S::kBlockingCopy,
           "A copy between the GPU and pageable memory blocks its caller until the stream is empty: "
           "use pinned memory with non_blocking=True, and read small results a step late.",
           "A copy between the GPU and pageable memory blocks its caller until the stream is empty: copy "
           "from and to pinned memory (cudaHostAlloc, cudaHostRegister) with cudaMemcpyAsync, and read "
           "small results a step late."},
    Advice{F::kSync, S::kItem,
           "Reading a value of the GPU on the host (.item(), float(loss), a mask, print) waits for all "
           "that is queued: keep sums on the GPU and read them every so many steps, or copy them "
           "asynchronously and look a step later.",
           "Reading a value of the GPU on the host waits for all that is queued: keep sums on the GPU "
           "and read them every so many steps, or copy them asynchronously and look a step later."},

    Advice{F::kAllocation, S::kNone,
           "Memory is allocated and freed in the loop: allocate once and use it again, or use a caching "
           "or stream-ordered allocator.", ""},
    Advice{F::kAllocation, S::kDeviceMalloc,
           "cudaMalloc in the loop: allocate before it, or use cudaMallocAsync or a caching allocator; "
           "with PyTorch, inputs of ever new sizes cause this (expandable_segments:True helps).",
           "cudaMalloc in the loop: allocate before it, or use cudaMallocAsync or a caching allocator; "
           "inputs of ever new sizes cause this."},
    Advice{F::kAllocation, S::kDeviceFree,
           "cudaFree waits for the device: do not free in the loop, and remove torch.cuda.empty_cache() "
           "from it.",
           "cudaFree waits for the device: do not free in the loop."},
    Advice{F::kAllocation, S::kHostMalloc,
           "Pinned memory is allocated in the loop, which takes milliseconds: keep a few pinned buffers "
           "and use them in turn.", ""},
    Advice{F::kAllocation, S::kAllocatorRetry,
           "The allocator runs into the memory limit, frees all its caches and allocates anew: lower "
           "the peak (smaller batch, activation checkpointing) or set expandable_segments:True.",
           "Memory runs out, is freed and allocated anew: lower the peak (smaller batch, recomputed "
           "activations), or allocate from a pool without fragments."},

    Advice{F::kCheckpoint, S::kNone,
           "Training stands while a checkpoint is written: copy the state to pinned memory and write it "
           "from another thread or process (torch.distributed.checkpoint.async_save), or less often.",
           "Training stands while a checkpoint is written: copy the state to pinned memory and write it "
           "from another thread or process, or less often."},
    Advice{F::kCheckpoint, S::kBlockingCopy,
           "The checkpoint copies the state to pageable memory piece by piece, with a wait each: copy "
           "into pinned buffers that are kept, asynchronously, and write them in the background.", ""},

    Advice{F::kHost, S::kNone,
           "The host is busy with something that launches nothing: look at the named thread and range; "
           "move the work to another thread or process, or out of the loop. If it is a loader of your own "
           "that makes the batch there, say so, and it is judged as one: "
           "with gpudiag.torch.range(\"load\", cause=\"data_loading\").",
           "The host is busy with something that launches nothing: look at the named thread and range; "
           "move the work to another thread or process, or out of the loop. If it is a loader of your own "
           "that makes the batch there, put it into a range of the cause data_loading, and it is judged as one."},
    Advice{F::kHost, S::kGarbageCollection,
           "Python's garbage collector stops the loop: gc.freeze() after set-up, gc.disable(), and "
           "gc.collect() every so many steps, at the same step on all ranks.", ""},
    Advice{F::kHost, S::kDispatch,
           "The framework dispatches many operators with little GPU work behind them: use fused or "
           "foreach variants, or torch.compile.",
           "Many operations are dispatched with little GPU work behind them: fuse them, or capture the "
           "step in a CUDA graph."},
    Advice{F::kHost, S::kPython,
           "Python code between launches takes the time: take it out of the loop, vectorise it, or do "
           "it while the GPU is busy.", ""},
    Advice{F::kHost, S::kCpu,
           "Computing on the training thread holds the GPU up: move it to a worker, to the GPU, or "
           "behind the launches of the next step.", ""},
    Advice{F::kHost, S::kLock,
           "The thread waits for a lock (the GIL or a mutex) that another thread of the process holds: "
           "move that thread's work to another process, or make its holds short.",
           "The thread waits for a lock that another thread of the process holds: make that thread's "
           "holds short, or move its work to another process."},
    Advice{F::kHost, S::kDisk,
           "The training thread itself reads or writes files: do it in the background.", ""},
    Advice{F::kHost, S::kNetwork,
           "The training thread waits for the network (metrics, tracking, remote storage): send from "
           "another thread, and in batches.", ""},
    Advice{F::kHost, S::kPreempted,
           "The thread is ready to run but has no processor: too many threads for the cores (set "
           "OMP_NUM_THREADS, fewer workers) or a container's CPU limit; bind ranks to cores.", ""},
    Advice{F::kHost, S::kLogging,
           "Logging holds the loop up: log every so many steps, from values that are on the host "
           "already, and write in the background.", ""},
    Advice{F::kHost, S::kCompile,
           "Something is compiled or captured again and again, for new shapes as a rule: pad to a few "
           "fixed shapes or mark them dynamic; warm up before the loop.", ""},

    Advice{F::kDependency, S::kNone,
           "The GPU waits for work elsewhere: another stream, device or process. Split or reorder that "
           "work so that something else can run meanwhile.", ""},
    Advice{F::kDependency, S::kOtherDevice,
           "A device waits for another one: balance their work, and overlap the two by micro-batches; "
           "the other device's ledger says why it was late.", ""},
    Advice{F::kDependency, S::kLaunchQueueFull,
           "The launch queue is full, so the launcher waits: nothing is lost by itself, but a second "
           "stream fed by the same thread runs dry; feed it from a thread of its own.", ""},
    Advice{F::kDependency, S::kOtherStream,
           "Streams wait for each other's events one after another: record events as early as the data "
           "is ready, and wait for them as late as it is used.", ""},

    Advice{F::kUnknown, S::kNone,
           "No evidence says why: mark the suspected code with an NVTX range, or switch on more sources "
           "of evidence (gpudiag run --help).", ""},

    Advice{F::kCommunication, S::kNone,
           "Communication runs while nothing is computed: overlap it with the backward pass (DDP "
           "buckets, FSDP prefetch), send less (gradient accumulation with no_sync, lower precision), "
           "and check the achieved bandwidth against the link.",
           "Communication runs while nothing is computed: overlap it with the backward pass (reduce "
           "gradients in buckets as they become ready, on a stream of its own), send less (accumulate "
           "gradients, lower precision), and check the achieved bandwidth against the link."},
    Advice{F::kCopy, S::kNone,
           "Copies run while nothing is computed: copy from pinned memory on a stream of their own "
           "while the step before computes (non_blocking=True, a prefetcher), and copy less.",
           "Copies run while nothing is computed: copy from pinned memory on a stream of their own while "
           "the step before computes, and copy less."},
    Advice{F::kRecompilation, S::kNone,
           "Code is compiled again in the middle of the run, for new shapes or changed Python values as a rule: "
           "mark the dimension dynamic (torch.compile(dynamic=True), mark_dynamic), pad to a few fixed shapes, and "
           "see TORCH_LOGS=recompiles for what changed.",
           "Code is compiled or loaded again in the middle of the run: pad inputs to a few fixed shapes, warm each "
           "of them up before the loop, and keep what was compiled."},
    Advice{F::kGraphRecapture, S::kNone,
           "Graphs are captured and instantiated again in the middle of the run, for new shapes as a rule: pad to a "
           "few fixed shapes and keep one graph for each; capture them before the loop.", ""},
    Advice{F::kHostTogether, S::kNone,
           "Several delays of the host hide each other: removing one lets the next take its place. "
           "Remove those listed together, the largest charge first, and do not be discouraged by the "
           "first.", ""},
};

}  // namespace

std::string_view advice_for(FindingCause cause, SubCause sub_cause, Wording wording) {
  std::string_view general;
  for (const Advice& advice : kAdvice) {
    if (advice.cause != cause) continue;
    const bool plain = wording == Wording::kPlain && !advice.plain.empty();
    const std::string_view text = plain ? advice.plain : advice.text;
    if (advice.sub_cause == sub_cause) return text;
    if (advice.sub_cause == SubCause::kNone) general = text;
  }
  return general;
}

bool is_name_of_torch(std::string_view what) {
  constexpr std::array<std::string_view, 7> kSigns{"DataLoader", "aten::",        "c10d::", "torch.",
                                                   "torch::",    "autograd::engine", "ProfilerStep#"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return what.find(sign) != std::string_view::npos; });
}

}  // namespace gpudiag
