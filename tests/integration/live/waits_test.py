# SPDX-License-Identifier: Apache-2.0
"""What holds the host up, provoked for real, is what the ledger's evidence says."""
import os
import pathlib
import subprocess
import unittest

from support import PROGRAMS, Folder, run

WAITS = PROGRAMS / "live_waits"
SECONDS = 5


def processor_ticks():
    """Idle and all, of the machine's processors."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


class Waits(unittest.TestCase):
    def held_up(self, trouble, seconds=SECONDS, **variables):
        """Charged host time by sub-cause, and the mean length of what held the host up, in ms."""
        with Folder() as folder, Folder() as work:
            done = run([WAITS, trouble, seconds], GPUDIAG_DIR=folder.path, GPUDIAG_LOG="off", GPUDIAG_RECORD="on",
                       WAITS_FOLDER=work.path, **variables)
            self.assertEqual((done.status, done.stdout), (0, f"held up by {trouble}\n"), done)
            charged, host, count = {}, 0, 0
            for iteration in folder.iterations():
                self.assertTrue(iteration["valid"], iteration)
                for seen in iteration["evidence"]:
                    if seen["cause"] != "host":
                        continue
                    name = seen["sub_cause"]
                    charged[name] = charged.get(name, 0) + seen["charged_ns"]
                    host, count = host + seen["host_ns"], count + seen["count"]
            self.check_recording(folder)
            return charged, host / max(1, count) / 1e6

    def check_recording(self, folder):
        """What was looked at stands in the recording: analysing it gives the same lines."""
        command = pathlib.Path(os.environ.get("GPUDIAG_COMMAND", ""))
        if not command.is_file():
            return
        recording = next(folder.path.glob("*.gpudiag"))
        live = next(folder.path.glob("*.jsonl")).read_bytes().splitlines()
        again = subprocess.run([command, "analyze", recording, "--format", "jsonl"], capture_output=True, check=True)
        of = [[line for line in lines if b"gpudiag.iteration/1" in line] for lines in (live, again.stdout.splitlines())]
        self.assertGreater(len(of[0]), 2)
        self.assertEqual(of[0], of[1])

    @staticmethod
    def most(charged):
        named = {name: time for name, time in charged.items() if name is not None and name != ""}
        return max(named, key=named.get) if named else ""

    def check(self, trouble, sub_cause):
        charged, _ = self.held_up(trouble)
        self.assertEqual(self.most(charged), sub_cause, charged)
        # The first second or two nobody looks; of the rest most is named.
        self.assertGreater(charged[sub_cause], 0.3 * sum(charged.values()), charged)

    def test_a_mutex_that_another_thread_holds_is_a_lock(self):
        self.check("lock", "lock")

    def test_an_answer_that_is_waited_for_on_a_socket_is_the_network(self):
        self.check("network", "network")

    def test_a_write_to_standard_error_that_nobody_reads_is_logging(self):
        self.check("logging", "logging")

    def test_processors_that_others_use_preempt(self):
        self.check("preempted", "preempted")

    def test_a_busy_host_is_cpu_unless_it_had_to_wait_for_its_processor(self):
        charged, mean = self.held_up("cpu")
        # Each time 25 ms of processor time: what it took beyond them was waiting.
        expected = {"cpu"} if mean < 40 else {"cpu", "preempted"} if mean < 60 else {"preempted"}
        self.assertIn(self.most(charged), expected, (charged, mean))

    def test_writes_that_wait_for_the_disk_are_the_disk(self):
        before = processor_ticks()
        charged, _ = self.held_up("disk")
        idle, total = (b - a for a, b in zip(before, processor_ticks()))
        # On a machine whose processors are full a thread waits for one after each write, longer than for the disk.
        expected = {"disk"} if idle > 0.2 * total else {"disk", "preempted"}
        self.assertIn(self.most(charged), expected, (charged, idle, total))

    def test_a_host_that_sleeps_is_no_cause_of_the_list(self):
        charged, mean = self.held_up("asleep")
        named = sum(time for name, time in charged.items() if name)
        if mean < 40:
            self.assertLess(named, 0.3 * sum(charged.values()), charged)

    def test_switched_off_nothing_is_named(self):
        charged, _ = self.held_up("lock", seconds=3, GPUDIAG_WATCH="off")
        self.assertEqual(self.most(charged), "", charged)


if __name__ == "__main__":
    unittest.main()
