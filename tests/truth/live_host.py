# SPDX-License-Identifier: Apache-2.0
"""What the host did, from the truth, in the words of the contract (docs/attribution.md).

Flow: truth → [host's doings] → replay. The thread that launches is cut into steps, one after the other without
a hole: calls, and pieces of time between them, each with the cause of idle time that it is evidence for.
"""
import dataclasses

from live_truth import Call

CAUSES = ("data_loading", "communication_wait", "launch_overhead", "sync", "allocation", "checkpoint", "host",
          "dependency", "unknown")
HOST_CAUSES = ("data_loading", "launch_overhead", "sync", "allocation", "checkpoint", "host")

# Ranges that own whatever happens inside them.
OWNERS = {"wait_for_batch": "data_loading", "checkpoint": "checkpoint"}

SYNCS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize")
DEVICE_MEMORY = ("cudaMalloc", "cudaFree")
ALLOCATIONS = DEVICE_MEMORY + ("cudaMallocHost", "cudaHostAlloc", "cudaFreeHost")
# Wait for all work of the device.
WHOLE_DEVICE = DEVICE_MEMORY + ("cudaFreeHost", "cudaDeviceSynchronize")
OTHERS = ("cudaEventRecord", "cudaStreamWaitEvent", "cudaGraphLaunch", "cudaGraphInstantiate",
          "cudaStreamBeginCapture", "cudaStreamEndCapture")
# Longer silence between calls is `host`.
DISPATCH_LIMIT = 250_000
# A batch that was there needs no longer than this, and its taker never gives up the processor.
READY_BATCH = 50_000
# No record tells whether the taker waited or had lost its processor: what takes longer looks like a late batch.
LOOKS_LATE = 2_000_000
# A few bytes that are read back and waited for at once: the copy of an `.item()`.
ITEM_BYTES = 1024


@dataclasses.dataclass
class Piece:
    """Host time outside of calls."""

    cause: str
    start: int
    end: int
    late_batch: bool = False  # ends when a batch came that somebody else made


@dataclasses.dataclass
class Step:
    """A call with its cause."""

    cause: str
    call: Call
    item_copy: bool = False  # a copy to the host that goes where the cause goes


def base_name(function):
    return function.split("_")[0]


def is_copy(function):
    return function.startswith(("cudaMemcpy", "cudaMemset"))


def counts(call):
    """Whether it is a call in the sense of the contract; others are code like any other."""
    name = base_name(call.function)
    return name.startswith("cudaLaunch") or is_copy(name) or name in SYNCS + ALLOCATIONS + OTHERS


def cause_of(call):
    name = base_name(call.function)
    if name in SYNCS:
        return "sync"
    if name in ALLOCATIONS:
        return "allocation"
    if is_copy(name) and any(wait.reason == "copy_blocks" for wait in call.waits):
        return "sync"
    if name == "cudaGraphInstantiate" and call.end - call.start > DISPATCH_LIMIT:
        return "host"
    return "launch_overhead"


def owners_between(ranges, start, end):
    """The ranges that own host time there, clipped, in order."""
    for r in ranges:
        if r.name in OWNERS and r.start < end and r.end > start:
            yield r, max(r.start, start), min(r.end, end)


def silence(start, end):
    if start < end:
        yield Piece("host" if end - start > DISPATCH_LIMIT else "launch_overhead", start, end)


def is_late(batch, as_recorded):
    """Whether the batch was not there yet: as it was, or as a record shows it."""
    length = batch.end - batch.start
    return length > LOOKS_LATE if as_recorded else batch.blocked > 0 and length > READY_BATCH


def misread_batches(truth):
    """How many batches look late and were not, or the other way round."""
    batches = [r for r in truth.ranges if r.name == "wait_for_batch"]
    return sum(is_late(batch, True) != is_late(batch, False) for batch in batches)


def pieces(ranges, start, end, as_recorded):
    """The time between two calls, piece by piece."""
    at = start
    for r, begin, until in owners_between(ranges, start, end):
        if begin < at:  # inside the one before
            continue
        yield from silence(at, begin)
        late = r.name == "wait_for_batch" and until == r.end and is_late(r, as_recorded)
        yield Piece(OWNERS[r.name], begin, until, late)
        at = until
    yield from silence(at, end)


def is_read_back(operation):
    return operation.kind == "memcpy" and operation.copy == "device_to_host"


def steps(truth, as_recorded=False):
    """All that the launching thread did, in order, from its first call on. `as_recorded`: with what no record can
    tell as a record shows it."""
    calls = [call for call in truth.calls if counts(call)]
    threads = {call.thread for call in calls}
    if len(threads) != 1:
        raise ValueError(f"calls on {len(threads)} threads; only one can be replayed")
    ranges = [r for r in truth.ranges if r.thread in threads and r.name in OWNERS]
    done = []
    for i, call in enumerate(calls):
        if i > 0:
            near = [r for r in ranges if r.start < call.start and r.end > calls[i - 1].end]
            done.extend(pieces(near, calls[i - 1].end, call.start, as_recorded))
        owner = next((r for r in ranges if r.holds(call.start)), None)
        reads = any(is_read_back(operation) for operation in call.operations)
        step = Step(OWNERS[owner.name] if owner else cause_of(call), call)
        if owner or step.cause == "sync":
            step.item_copy = reads
        elif reads and i + 1 < len(calls) and base_name(calls[i + 1].function) == "cudaStreamSynchronize":
            step.item_copy = all(operation.bytes <= ITEM_BYTES for operation in call.operations)
        done.append(step)
    return done


def item_cause(step):
    """Whose copy it is: an `.item()`'s is launched like any other and goes with the wait."""
    return "sync" if step.cause == "launch_overhead" else step.cause
