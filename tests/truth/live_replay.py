# SPDX-License-Identifier: Apache-2.0
"""The run again, without something: a plain simulation of the simulated GPU over what it really did.

Flow: truth → host's doings → [replay] → windows → judge. Written from the rules of CUDA and of the simulated GPU
(tools/simgpu/README.md), with no look at how the engine under test does it:

  - a call, or a piece of code between calls, whose cause is removed takes no time and waits for nothing;
  - other code takes as long as it took; a wait ends when both the host and what it waits for are there;
  - an operation starts when it has reached the device, its stream's last one is done, and so is all that it
    follows; copies in one direction share an engine of their device;
  - a launch waits while its stream holds as many operations as fit.

With nothing removed every time must be what it was, to the nanosecond: `differences()`.
"""
import bisect
import collections

from live_host import WHOLE_DEVICE, Piece, base_name, item_cause

QUEUE_DEPTH = 1024
LONG_AGO = -(2**62)
ENGINES = ("host_to_device", "device_to_host", "peer_to_peer")


class CopyEngine:
    """Moves one thing at a time; who fits into an earlier hole goes first."""

    def __init__(self):
        self.busy = []  # start, end; sorted

    def book(self, earliest, length):
        start = earliest
        at = bisect.bisect_left(self.busy, (start, start))
        if at > 0 and self.busy[at - 1][1] > start:
            at -= 1
        while at < len(self.busy) and self.busy[at][0] < start + length:
            start = max(start, self.busy[at][1])
            at += 1
        if length > 0:
            bisect.insort(self.busy, (start, start + length))
        return start


class Replay:
    """The run without the host time and waits of the causes `removed`, which may also name "communication" and
    "copy": operations of that kind then take no time."""

    def __init__(self, truth, steps, removed=()):
        self.truth = truth
        self.removed = frozenset(removed)
        self.start = {}  # of each operation, by id
        self.end = {}
        self.streams = collections.defaultdict(list)  # ids, in order
        self.engines = collections.defaultdict(CopyEngine)
        self.time = steps[0].call.start  # of the host
        self.host = []  # when each step was done
        for step in steps:
            if isinstance(step, Piece):
                self.pass_time(step)
            else:
                self.make_call(step)
            self.host.append(self.time)

    def pass_time(self, piece):
        if piece.cause in self.removed:
            return
        if piece.late_batch:
            self.time = max(self.time, piece.end)
        else:
            self.time += piece.end - piece.start

    def make_call(self, step):
        call = step.call
        gone = step.cause in self.removed
        at = call.start  # how far we are in the call as it was
        begun = None  # the first operation of this call
        for time, _, what in self.events(call):
            if not gone:
                self.time += time - at
            at = time
            if what is None:
                if not gone:
                    self.wait_for_device(call)
            elif hasattr(what, "reason"):
                at = what.end
                if what.reason == "launch_queue_full":
                    self.enter_full_queue(call.operations[0], what)
                elif not gone:
                    late = what.end - max(what.start, self.ended(what.operation))
                    self.time = max(self.time, self.end[what.operation]) + max(late, 0)
            else:
                if begun is None:
                    self.wait_for_room(what, at)
                    begun = (what, self.time)
                self.queue(step, what, begun)
        if not gone:
            self.time += call.end - at

    @staticmethod
    def events(call):
        """What happens inside a call, in order."""
        events = [(wait.start, 0, wait) for wait in call.waits] + [(o.queued, 1, o) for o in call.operations]
        if base_name(call.function) in WHOLE_DEVICE:
            events.append((call.start, -1, None))
        return sorted(events, key=lambda event: event[:2])

    def ended(self, operation):
        return self.truth.operations[operation].end

    def wait_for_device(self, call):
        """What had ended when the call was made is not among its waits; earlier it might have held it up. The
        length of what it did wait for is added by the waits."""
        waited = {wait.operation for wait in call.waits}
        for (device, *_), ids in self.streams.items():
            if device == call.device and ids[-1] not in waited:
                self.time = max(self.time, self.end[ids[-1]])

    def before_in_queue(self, operation):
        """What must have left the queue before this can enter it."""
        ids = self.streams[operation.stream]
        return ids[-QUEUE_DEPTH] if len(ids) >= QUEUE_DEPTH else None

    def enter_full_queue(self, operation, wait):
        head = self.before_in_queue(operation)
        late = wait.end - max(wait.start, self.ended(head)) if head else 0
        self.time = max(self.time, self.end[head] if head else LONG_AGO) + max(late, 0)

    def wait_for_room(self, operation, _):
        head = self.before_in_queue(operation)
        if head is not None and "dependency" not in self.removed:
            self.time = max(self.time, self.end[head])

    def queue(self, step, operation, begun):
        first, at = begun
        ids = self.streams[operation.stream]
        start = LONG_AGO
        if operation.kind != "graph_launch":
            # The device starts a graph's nodes without the host.
            start = at + operation.earliest - first.queued if operation.node else self.time + (
                operation.earliest - operation.queued)
        start = max([start] + [self.end[id] for id in operation.behind] + ([self.end[ids[-1]]] if ids else []))
        length = self.length(step, operation)
        if operation.kind == "memcpy" and operation.copy in ENGINES:
            start = self.engines[operation.device, operation.copy].book(start, length)
        self.start[operation.id] = start
        self.end[operation.id] = start + length
        ids.append(operation.id)

    def length(self, step, operation):
        if operation.kind == "graph_launch" or operation.state in self.removed:
            return 0
        if step.item_copy and operation.copy == "device_to_host" and item_cause(step) in self.removed:
            return 0
        return operation.end - operation.start


def differences(truth, steps, again):
    """The number of times that differ from what they were, and the largest difference. `again` has nothing removed,
    so there must be none."""
    wrong = [abs(again.end[o.id] - o.end) for o in truth.operations.values() if o.id in again.end]
    wrong += [abs(again.start[o.id] - o.start) for o in truth.operations.values() if o.state]
    wrong += [abs(time - (s.end if isinstance(s, Piece) else s.call.end)) for time, s in zip(again.host, steps)]
    missing = sum(o.id not in again.end for o in truth.operations.values())
    return missing + sum(difference != 0 for difference in wrong), max(wrong)


class Replays:
    """The run without any set of causes; each is replayed once, when it is asked for."""

    def __init__(self, truth, steps):
        self.truth = truth
        self.steps = steps
        self.done = {}

    def without(self, removed):
        removed = frozenset(removed)
        if removed not in self.done:
            self.done[removed] = Replay(self.truth, self.steps, removed)
        return self.done[removed]
