# SPDX-License-Identifier: Apache-2.0
"""Holds a ledger against the truth of the same run.

Flow: trainer → truth file → replay, windows → [judge]. What is asked (attribution.md, sections 2, 4 and 5):

  - every complete iteration has the window, and in it the compute, communication, copy and idle time, of an
    independent sweep over what happened, to the nanosecond;
  - each cause's replay cost is what the truth's own replay without it saves, within 2 % of wall;
  - each cause's charge lies between the idle time saved when it is removed first and when it is removed last, or of
    several causes at any place in between, within 2 % of wall;
  - what the truth ranks first is the leading finding, where it leads by more than 3 % of wall.

Both sides are of one run, so how busy the machine was makes no difference.
"""
import dataclasses
import itertools

import live_replay
from live_host import CAUSES, HOST_CAUSES, misread_batches, steps
from live_recording import match
from live_windows import launched, windows

TOLERANCE = 0.02
LEAD = 0.03
LEAST_FINDING = 0.02
MATERIAL = 0.005
RUNS = 3
# Between the clock of CUPTI, as converted, and the one of the truth.
CLOCKS_APART = 200_000
BUSY = ("communication", "copy")
EVERYTHING = frozenset(HOST_CAUSES)


@dataclasses.dataclass
class Row:
    """A cause on a device, over the judged iterations, in shares of wall."""

    device: int
    cause: str
    true_cost: float
    replay_cost: float
    charge: float = 0.0
    least: float = 0.0
    most: float = 0.0
    any_place: bool = False  # least and most are those of any order of removal, not of the first and the last place

    @property
    def cost_off(self):
        return self.replay_cost - self.true_cost

    @property
    def charge_off(self):
        return self.charge - min(max(self.charge, self.least), self.most)

    @property
    def right(self):
        return abs(self.cost_off) <= TOLERANCE and abs(self.charge_off) <= TOLERANCE

    def __str__(self):
        return (f"device {self.device} {self.cause}: true cost {self.true_cost:.2%}, replay {self.replay_cost:.2%}, "
                f"charge {self.charge:.2%} (allowed {self.least:.2%} to {self.most:.2%})")


@dataclasses.dataclass
class Verdict:
    faults: list  # one line each
    rows: list
    wall: float  # ns an iteration
    true_findings: list  # cause, share; falling
    finding: str  # gpudiag's verdict
    iterations: int
    clocks_apart: int = 0  # ns, at most, between the recording and the truth
    misread: int = 0  # batches that were taken for what the records show, which is not what happened
    really: "Verdict | None" = None  # then: the verdict by what did happen

    def row(self, cause):
        """Of the device where the cause costs most."""
        return max((r for r in self.rows if r.cause == cause), key=lambda r: r.true_cost, default=None)

    def worst_other(self, cause):
        """Of the other rows, the one that is furthest off."""
        others = [row for row in self.rows if row.cause != cause]
        return max(others, key=lambda r: max(abs(r.cost_off), abs(r.charge_off)), default=None)


def difference(ledger, window, origin):
    """What of the ledger's iteration is not as in the window; empty where all is."""
    pairs = (
        ("start", ledger["start_ns"] + origin, window.start), ("wall", ledger["wall_ns"], window.wall),
        ("compute", ledger["compute_ns"], window.compute), ("copy", ledger["copy_ns"], window.copy),
        ("communication", ledger["communication_ns"], window.communication), ("idle", ledger["idle_ns"], window.idle),
    )
    return ", ".join(f"{name} {said} is {true}" for name, said, true in pairs if said != true)


def adds_up(ledger):
    busy = ledger["compute_ns"] + ledger["communication_ns"] + ledger["copy_ns"]
    return ledger["wall_ns"] == busy + ledger["idle_ns"] and ledger["idle_ns"] == sum(ledger["idle"].values())


def judge_windows(device, ledgers, recorded, faults):
    """Every iteration, to the nanosecond. `recorded` are windows in the times of the recording."""
    if len(ledgers) != len(recorded):
        faults.append(f"device {device}: {len(ledgers)} iterations, really {len(recorded)}")
        return
    origin = recorded[0].start - ledgers[0]["start_ns"]
    for ledger, window in zip(ledgers, recorded):
        where = f"device {device}, {ledger['label']} {ledger['index']}"
        if not adds_up(ledger):
            faults.append(f"{where}: the sums do not add up")
        if not ledger["valid"]:
            faults.append(f"{where}: invalid, {ledger['invalid_counts']}")
        if wrong := difference(ledger, window, origin):
            faults.append(f"{where}: {wrong}")


def judged(ledgers, steady):
    """First and last of the iterations that the report sums as steady: the last so many complete ones."""
    complete = [i for i, ledger in enumerate(ledgers) if ledger["valid"] and not ledger["partial"]]
    return complete[-steady], complete[-1]


class DeviceTruth:
    """One device's wall and idle time over the judged iterations, by what is removed."""

    def __init__(self, truth, replays, device, first, last):
        self.by_iteration = launched(truth, device)
        self.replays, self.first, self.last = replays, first, last
        self.sums = {}

    def sum(self, removed):
        """Wall and idle time without these causes."""
        removed = frozenset(removed)
        if removed not in self.sums:
            replay = self.replays.without(removed)
            chosen = windows(self.by_iteration, replay.start, replay.end)[self.first : self.last + 1]
            self.sums[removed] = (sum(window.wall for window in chosen), sum(window.idle for window in chosen))
        return self.sums[removed]

    def cost(self, *removed):
        return self.sum(())[0] - self.sum(removed)[0]

    def idle_saved(self, cause, before):
        """When the cause is removed after those of `before`."""
        return self.sum(before)[1] - self.sum(set(before) | {cause})[1]

    def first_and_last(self, cause):
        saved = [self.idle_saved(cause, before) for before in ((), EVERYTHING - {cause})]
        return min(saved), max(saved)

    def any_place(self, cause, others):
        """The least and the most it saves, wherever in the order of removal it comes, `others` being the causes
        that may go before it one by one."""
        rest = EVERYTHING - set(others) - {cause}
        sets = [set(chosen) for n in range(len(others) + 1) for chosen in itertools.combinations(others, n)]
        saved = [self.idle_saved(cause, before) for chosen in sets for before in (chosen, chosen | rest)]
        return min(saved), max(saved)


def rows_of(device, truth, ledgers):
    """`ledgers`: the judged ones of the device."""
    wall = sum(ledger["wall_ns"] for ledger in ledgers)

    def said(group, cause):
        return sum(ledger[group][f"{cause}_ns"] for ledger in ledgers) / wall

    rows = []
    for cause in HOST_CAUSES:
        least, most = truth.first_and_last(cause)
        rows.append(Row(device, cause, truth.cost(cause) / wall, said("replay_cost", cause), said("idle", cause),
                        least / wall, most / wall))
    # Of more than two causes one may weigh most when it is removed neither first nor last.
    material = [row.cause for row in rows if max(abs(row.true_cost), row.charge) > MATERIAL]
    for row in rows:
        if not row.right and abs(row.cost_off) <= TOLERANCE:
            row.least, row.most = (
                saved / wall for saved in truth.any_place(row.cause, [c for c in material if c != row.cause]))
            row.any_place = True
    for kind in BUSY:
        rows.append(Row(device, kind, truth.cost(kind) / wall, said("replay_cost", kind)))
    rows.append(Row(device, "all_host", truth.cost(*HOST_CAUSES) / wall, said("replay_cost", "all_host")))
    # What is idle with no host cause at all; the rest of the idle time has one.
    left = truth.sum(EVERYTHING)[1] / wall
    rest = sum(said("idle", cause) for cause in CAUSES if cause not in HOST_CAUSES)
    rows.append(Row(device, "no_host_cause", 0, 0, rest, 0, left))
    return rows


def hide_each_other(costs, together, slack):
    """Whether the host causes are worth more together than alone, so that they are one finding: attribution.md
    section 4. `slack` makes it easier, in shares of wall."""
    alone = [costs[cause] for cause in HOST_CAUSES]
    return (together - sum(alone) >= LEAST_FINDING - slack and together + slack >= 1.25 * (sum(alone) - slack)
            and together + slack >= 2 * (max(alone) - slack))


def judge_finding(verdict, costs, together, faults):
    """`costs`: of each cause, as the truth has them. Where it is a close thing whether the host causes are one
    finding, either will do. Where it is none, the dearest single cause is no wrong answer either: the product
    names all together only if iterations agree on it, and those of a busy machine may not."""
    surely = hide_each_other(costs, together, -TOLERANCE)
    maybe = hide_each_other(costs, together, TOLERANCE)
    if maybe and verdict == "host_together":
        return
    ranked = sorted(costs.items(), key=lambda item: -item[1])
    if surely:
        if verdict == ranked[0][0]:
            return
        ranked = sorted(ranked + [("host_together", together)], key=lambda item: -item[1])
    lead = ranked[0][1] - max(ranked[1][1], 0)
    if ranked[0][1] >= LEAST_FINDING + LEAD and lead > LEAD and verdict != ranked[0][0] and not (
            maybe and not surely):
        faults.append(f"verdict {verdict}, but {ranked[0][0]} costs {ranked[0][1]:.2%}, {lead:.2%} more than the next")


def judge_costs(run, recorded, as_recorded, widened=None):
    """Rows of all devices and what is wrong, by the truth's own replay. `recorded`: windows by device; `widened`: a
    verdict whose bounds of charges are allowed too."""
    faults = []
    done = steps(run.truth, as_recorded)
    replays = live_replay.Replays(run.truth, done)
    wrong, largest = live_replay.differences(run.truth, done, replays.without(()))
    if wrong and not as_recorded:
        faults.append(f"the truth's own replay is wrong: {wrong} times differ by up to {largest} ns")
    rows, wall, iterations = [], 0, 0
    for reported in run.report["ranks"][0]["devices"]:
        number = reported["device"]
        ledgers = run.ledgers_of(number)
        first, last = judged(ledgers, reported["steady"]["iterations"])
        truth = DeviceTruth(run.truth, replays, number, first, last)
        rows.extend(rows_of(number, truth, ledgers[first : last + 1]))
        wall += truth.sum(())[0] / len(recorded)
        iterations = last + 1 - first
    if widened is not None:
        for row, other in zip(rows, widened.rows):
            row.least, row.most = min(row.least, other.least), max(row.most, other.most)
            if row.cause == "launch_overhead":
                # A late batch takes the lead that a cause would have had; what the cause has been charged by then is
                # taken off its later claims, and what it does not claim is charged to launching.
                row.most = max(row.most, row.charge)
    faults.extend(str(row) for row in rows if not row.right)
    costs, together = sum_costs(rows, len(recorded))
    judge_finding(run.report["verdict"], costs, together, faults)
    ranked = sorted(costs.items(), key=lambda item: -item[1])
    return Verdict(faults, rows, wall / iterations, ranked, run.report["verdict"], iterations)


def judge(run):
    """Everything there is to say of a run. Where the engine could not know that a batch was there, since its taker
    had only lost the processor, it may also be right by what the records show."""
    faults = []
    start_of, end_of = match(run.truth, run.recorded)
    apart = max((start_of[i] - run.truth.operations[i].start for i in start_of), key=abs)
    if abs(apart) > CLOCKS_APART:
        faults.append(f"the recording's times are up to {apart} ns off")
    devices = sorted({ledger["device"] for ledger in run.ledgers})
    recorded = {device: windows(launched(run.truth, device), start_of, end_of) for device in devices}
    for device in devices:
        judge_windows(device, run.ledgers_of(device), recorded[device], faults)
    verdict = judge_costs(run, recorded, False)
    if verdict.faults and (misread := misread_batches(run.truth)):
        other = judge_costs(run, recorded, True, verdict)
        if len(other.faults) < len(verdict.faults):
            other.misread, other.really = misread, verdict
            verdict = other
    verdict.faults[:0] = faults
    verdict.clocks_apart = apart
    return verdict


def judge_runs(one_run):
    """The verdict on what `one_run()` gives. Of a run with misread batches there is less to be said, so there are up
    to three."""
    for _ in range(RUNS):
        verdict = judge(one_run())
        if not verdict.misread:
            break
    return verdict


def sum_costs(rows, devices):
    """Shares of the wall time of all devices; those of one length differ by less than matters here."""
    costs = {cause: sum(row.true_cost for row in rows if row.cause == cause) / devices
             for cause in HOST_CAUSES + BUSY}
    return costs, sum(row.true_cost for row in rows if row.cause == "all_host") / devices
