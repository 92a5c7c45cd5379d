# SPDX-License-Identifier: Apache-2.0
"""What holds a PyTorch job up, provoked for real, is what the ledger's evidence says."""
import os
import unittest

import support

WAITING = support.HERE / "waiting.py"
SECONDS = 6


def idle_share(before, after):
    """Of the processors that this process may use, between two readings."""
    idle = total = 0
    for name in before:
        spent = [b - a for a, b in zip(before[name], after[name])]
        total += sum(spent[:8])
        idle += spent[3] + spent[4]
    return idle / max(1, total)


def processors():
    names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    with open("/proc/stat") as file:
        rows = [line.split() for line in file]
    return {row[0]: [int(word) for word in row[1:]] for row in rows if row[0] in names}


class Waiting(unittest.TestCase):
    def charged(self, name, cause):
        """Idle time of `cause` by sub-cause, without the first iterations: PyTorch starts in them."""
        before = processors()
        run = support.python(WAITING, name, SECONDS)
        self.idle = idle_share(before, processors())
        self.assertEqual((run.status, run.stdout), (0, "trained\n"), run)
        charged = {}
        for one in run.later():
            for seen in one["evidence"]:
                if seen["cause"] == cause:
                    charged[seen["sub_cause"]] = charged.get(seen["sub_cause"], 0) + seen["charged_ns"]
        return charged

    def most(self, charged):
        named = {name: time for name, time in charged.items() if name}
        return max(named, key=named.get) if named else ""

    def check(self, name, cause, sub_cause):
        charged = self.charged(name, cause)
        self.assertEqual(self.most(charged), sub_cause, charged)
        self.assertGreater(charged[sub_cause], 0.3 * sum(charged.values()), charged)

    def test_OneBusyWorkerBesideFreeProcessorsIsTooFew(self):
        charged = self.charged("one_busy_worker", "data_loading")
        # What is right hangs on what else the machine does.
        expected = {"too_few_workers"} if self.idle > 0.2 else {"too_few_workers", "workers_cpu_bound"}
        if self.idle < 0.05:
            expected = {"workers_cpu_bound"}
        self.assertIn(self.most(charged), expected, (charged, self.idle))

    def test_MoreBusyWorkersThanProcessorsAreBoundByThem(self):
        self.check("more_workers_than_processors", "data_loading", "workers_cpu_bound")

    def test_WorkersThatAskAStorageWaitForIt(self):
        self.check("workers_that_ask_storage", "data_loading", "io_wait")

    def test_ALoaderWithoutWorkersThatAsksAStorageWaitsForIt(self):
        self.check("inline_that_asks_storage", "data_loading", "io_wait")

    def test_ALoaderWithoutWorkersThatComputesIsInline(self):
        self.check("inline", "data_loading", "inline")

    def test_BatchesThatAreSlowToTakeOutOfTheQueueAreUnpickled(self):
        self.check("heavy_batches", "data_loading", "unpickling")

    def test_WorkersOfEachShortEpochHaveToStart(self):
        self.check("short_epochs", "data_loading", "worker_start")

    def test_AThreadThatKeepsTheGilIsALock(self):
        self.check("another_thread_holds_the_gil", "host", "lock")


if __name__ == "__main__":
    unittest.main()
