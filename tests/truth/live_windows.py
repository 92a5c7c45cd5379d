# SPDX-License-Identifier: Apache-2.0
"""Iteration windows of a device and what it did in them, from the start and end of each operation.

Flow: truth → replay → [windows] → judge. The contract (attribution.md, sections 1 and 2) in its plainest form:
a window ends with the operation that its iteration launched last, and at each moment the first of compute,
communication and copy that runs names the device's state.
"""
import bisect
import dataclasses

STATES = ("compute", "communication", "copy")


@dataclasses.dataclass
class Window:
    start: int
    end: int
    compute: int = 0
    communication: int = 0
    copy: int = 0
    idle: int = 0

    @property
    def wall(self):
        return self.end - self.start


def launched(truth, device):
    """The device's operations by iteration, each iteration's in the order of launch, those of one call together."""
    ends = truth.boundaries
    found = [[] for _ in range(len(ends) + 1)]
    for call in truth.calls:
        operations = [o for o in call.operations if o.device == device and o.state]
        if operations:
            found[bisect.bisect_right(ends, call.start)].append(operations)
    if not found[-1]:
        found.pop()  # what comes after the last iteration is one only if the device works in it
    return found


def union(spans):
    """Sorted, without overlap or empty ones."""
    united = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if united and start <= united[-1][1]:
            united[-1][1] = max(united[-1][1], end)
        else:
            united.append([start, end])
    return united


def covered(united, start, end):
    """How much of [start, end) they cover."""
    total = 0
    at = max(0, bisect.bisect_right(united, [start, start]) - 1)
    while at < len(united) and united[at][0] < end:
        total += max(0, min(united[at][1], end) - max(united[at][0], start))
        at += 1
    return total


def windows(by_iteration, start_of, end_of):
    """One window an iteration; `start_of` and `end_of` say when operations began and ended, by id."""
    operations = [o for calls in by_iteration for call in calls for o in call]
    if not operations:
        return []
    spans = {state: [] for state in STATES}
    for o in operations:
        spans[o.state].append((start_of[o.id], end_of[o.id]))
    down_to = [union(sum((spans[state] for state in STATES[: i + 1]), [])) for i in range(len(STATES))]
    found = []
    at = min(start_of[o.id] for o in operations)
    for calls in by_iteration:
        end = max([at] + [end_of[o.id] for o in calls[-1]]) if calls else at
        window = Window(at, end)
        sums = [covered(united, at, end) for united in down_to]
        window.compute, window.communication, window.copy = sums[0], sums[1] - sums[0], sums[2] - sums[1]
        window.idle = window.wall - sums[2]
        found.append(window)
        at = end
    return found
