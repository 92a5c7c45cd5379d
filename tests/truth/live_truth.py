# SPDX-License-Identifier: Apache-2.0
"""What happened in a run on the simulated GPU, read from the file that SIMGPU_TRUTH names.

Flow: trainer → [truth file] → replay, windows → judge. Nothing here or behind it knows the engine that is
judged, nor the simulated CUPTI; the format is in tools/simgpu/README.md. Times are ns of CLOCK_MONOTONIC.
"""
import collections
import dataclasses
import json

# What runs on a device and is recorded; the rest of a stream (events, markers) takes no time there.
RECORDED = ("kernel", "memcpy", "memset")


@dataclasses.dataclass
class Operation:
    id: int
    kind: str
    device: int
    stream: tuple  # device, context, stream
    correlation: int
    node: int
    queued: int
    earliest: int  # reaches the device
    start: int
    end: int
    name: str
    copy: str
    bytes: int
    behind: list  # ids of the operations of other streams that go before it

    @property
    def state(self):
        """As what a device is busy with it; None where it is not."""
        if self.kind not in RECORDED:
            return None
        if self.kind == "kernel":
            return "compute"
        return "communication" if self.copy == "peer_to_peer" else "copy"


@dataclasses.dataclass
class Wait:
    """Of a call for an operation; it did not block where `end` is `start`."""

    reason: str
    operation: int
    start: int
    end: int


@dataclasses.dataclass
class Call:
    function: str
    correlation: int
    thread: int
    device: int
    start: int
    end: int
    waits: list = dataclasses.field(default_factory=list)
    operations: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Range:
    thread: int
    name: str
    start: int
    end: int
    blocked: int  # times its thread gave up the processor in it

    def holds(self, time):
        return self.start <= time < self.end


@dataclasses.dataclass
class Truth:
    calls: list  # by start
    operations: dict  # by id, in the order in which they were queued
    ranges: list  # by start

    @property
    def boundaries(self):
        """Where iterations end on the host: the first with the first range that marks the loop, the others with
        the end of theirs."""
        marks = [r for r in self.ranges if r.name == "step"]
        return [marks[0].start] + sorted(r.end for r in marks)


def operation_of(line):
    return Operation(
        line["id"], line["kind"], line["device"], (line["device"], line["context"], line["stream"]),
        line["correlation"], line["node"], line["queued_ns"], line["earliest_ns"], line["start_ns"], line["end_ns"],
        line.get("name", ""), line.get("copy", ""), line.get("bytes", 0),
        line.get("waits_for", []) + line.get("follows", []),
    )


def read_truth(path):
    """The whole file. A ValueError says what is wrong with it."""
    lines = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            lines[line["type"]].append(line)
    if lines["unfinished"] or lines["fault"]:
        raise ValueError(f"{path}: operations that never ended, or faults: not a run that can be replayed")
    calls = {
        line["correlation"]: Call(line["function"], line["correlation"], line["thread"], line["device"],
                                  line["start_ns"], line["end_ns"])
        for line in lines["call"]
    }
    operations = sorted((operation_of(line) for line in lines["operation"]), key=lambda o: o.id)
    for operation in operations:
        calls[operation.correlation].operations.append(operation)
    for line in lines["wait"]:
        calls[line["correlation"]].waits.append(
            Wait(line["reason"], line["for_operation"], line["start_ns"], line["end_ns"]))
    for line in lines["pass"]:
        calls[line["correlation"]].waits.append(
            Wait(line["reason"], line["for_operation"], line["time_ns"], line["time_ns"]))
    for call in calls.values():
        call.waits.sort(key=lambda wait: wait.start)
    ranges = [Range(r["thread"], r["name"], r["start_ns"], r["end_ns"], r["blocked"]) for r in lines["range"]]
    return Truth(
        sorted(calls.values(), key=lambda call: call.start),
        {operation.id: operation for operation in operations},
        sorted(ranges, key=lambda r: (r.start, -r.end)),
    )
