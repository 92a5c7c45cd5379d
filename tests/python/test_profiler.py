# SPDX-License-Identifier: Apache-2.0
"""Beside torch.profiler: its traces are what they are without us, the ledger goes on behind each, in our
clock, and the time between is counted."""
import pathlib
import socket
import statistics
import struct
import tempfile
import threading
import unittest

from support import HERE, program, python

PROGRAM = HERE / "profiled.py"
STEPS = 40


class Profiler(unittest.TestCase):
    maxDiff = None

    def beside(self, mode, how="run", **variables):
        """The run with us; its traces and what the job prints of itself are those of the run without."""
        run = python(PROGRAM, mode, how=how, **variables)
        bare = python(PROGRAM, mode, how="bare", **variables)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.found(), bare.found())
        self.assertNotIn("unknown buffer", run.stderr)
        self.assertNotIn("CUPTI", run.stderr)
        return run

    def check(self, run, gaps):
        """`gaps`: (first, last) iteration in which the profiler was open. Iterations next to them may go
        either way; all others are valid, and as long as their host's time says."""
        iterations = {one["index"]: one for one in run.iterations if one["opened_by"] == "optimizer"}
        good = []
        for index in range(1, STEPS - 1):
            one = iterations.get(index)
            self.assertIsNotNone(one, f"iteration {index} of {sorted(iterations)}")
            if any(first < index < last for first, last in gaps):
                self.assertIn("stood_aside", one["invalid_reasons"], one)
            elif not any(first - 1 <= index <= last + 2 for first, last in gaps):
                self.assertEqual(one["invalid_reasons"], [], one)
                self.assertGreater(one["operations"], 10, one)
                good.append(one)
        # Each step waits for the GPU and sleeps for 10 ms, so its time on both is much the same.
        for side in ([one for one in good if one["index"] < gaps[0][0]], [one for one in good if one["index"] > gaps[-1][1]]):
            if side:
                ratio = statistics.median(one["wall_ns"] / one["host_step_ns"] for one in side)
                self.assertTrue(0.7 < ratio < 1.4, ratio)
        self.assertEqual(len({one["operations"] for one in good}), 1, {one["index"]: one["operations"] for one in good})
        told = [note for note in run.notes if note["code"] == "stood_aside"]
        self.assertEqual(len(told), len(gaps), told)
        for note in told:
            self.assertIn("stood aside for torch.profiler for ", note["text"])
        return good

    def test_AScheduleThatIsRepeated(self):
        run = self.beside("scheduled")
        self.assertEqual([trace["steps"] for trace in run.found()], [3, 3])
        self.assertGreater(run.found()[0]["kernels"], 30)
        self.check(run, [(4, 8), (13, 17)])

    def test_AnInjectedSessionStandsAsideAfterStopToo(self):
        run = self.beside("after_stop")
        self.assertEqual(len([note for note in run.notes if note["code"] == "stood_aside"]), 2, run.notes)

    def test_TeardownOff(self):
        self.check(self.beside("scheduled", TEARDOWN_CUPTI="0"), [(4, 8), (13, 17)])

    def test_TeardownOn(self):
        self.check(self.beside("scheduled", TEARDOWN_CUPTI="1"), [(4, 8), (13, 17)])

    def test_TeardownOnAndNoSecondSession(self):
        self.check(self.beside("plain", TEARDOWN_CUPTI="1"), [(10, 20)])

    def test_OpenedAndClosedByHand(self):
        self.check(self.beside("plain"), [(10, 20)])

    def test_AutogradsProfiler(self):
        self.check(self.beside("autograd"), [(10, 14)])

    def test_AutogradsProfilerWithEventsLeavesUsAlone(self):
        run = self.beside("events")
        self.assertEqual([note for note in run.notes if "aside" in note["code"]], [])

    def test_OpenBeforeUs(self):
        run = self.beside("before", how="import")
        self.assertEqual([note["code"] for note in run.notes if "aside" in note["code"]],
                         ["standing_aside", "stood_aside"])
        good = [one for one in run.iterations if one["valid"] and one["operations"] > 10]
        self.assertGreater(len(good), 20)

    def test_WithoutCudaItLeavesUsAlone(self):
        run = self.beside("cpu_only")
        self.assertEqual([note for note in run.notes if "aside" in note["code"]], [])
        self.assertEqual([one["index"] for one in run.iterations if not one["valid"]], [])

    def test_WithoutCudaFirst(self):
        run = self.beside("cpu_first")
        told = [note for note in run.notes if note["code"] == "stood_aside"]
        self.assertEqual(len(told), 1)
        self.assertTrue(all(one["valid"] for one in run.iterations if one["index"] > 30))

    def test_OneThatFailsToBegin(self):
        run = self.beside("failing")
        self.assertTrue(all(one["valid"] for one in run.iterations if one["index"] > 23))

    def test_ManySessions(self):
        run = self.beside("many")
        told = [note for note in run.notes if note["code"] == "stood_aside"]
        self.assertEqual(len(told), len(run.found()))
        self.assertTrue(all(one["valid"] for one in run.iterations if 32 < one["index"] < STEPS - 1))

    def test_WithTheSubscriberOurs(self):
        self.check(self.beside("plain", GPUDIAG_CALLBACKS="on"), [(10, 20)])


class Daemon(threading.Thread):
    """Stands in for dynolog's: asks the first Kineto that calls for one trace."""

    HEADER = struct.Struct("<Q32s")  # size of what follows, its kind

    def __init__(self, trace):
        super().__init__(daemon=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(b"\0dynolog\0")
        self._wanted = f"PROFILE_START_TIME=0\nACTIVITIES_LOG_FILE={trace}\nACTIVITIES_DURATION_MSECS=500\n".encode()
        self._calls = 0

    def run(self):
        while True:
            message, sender = self._socket.recvfrom(65536)
            kind = self.HEADER.unpack_from(message)[1].rstrip(b"\0")
            if not kind:
                return
            self._calls += kind == b"req"
            # The first call comes before CUDA is used.
            answer = struct.pack("<i", 1) if kind == b"ctxt" else self._wanted if self._calls == 2 else b""
            self._socket.sendto(self.HEADER.pack(len(answer), kind) + answer, sender)

    def end(self):
        self._socket.sendto(self.HEADER.pack(0, b""), b"\0dynolog\0")
        self.join()
        self._socket.close()


class OnDemand(unittest.TestCase):
    """Kineto's traces that a daemon asks for: the script knows of nothing."""

    def test_WithoutADaemonTheJobAndTheLedgerAreAsEver(self):
        bare = program("steps", how="bare")
        run = program("steps", KINETO_USE_DAEMON="1")
        self.assertEqual((run.status, run.stdout), (0, bare.stdout), run.stderr)
        self.assertEqual(run.numbers()[:12], list(range(12)))
        self.assertEqual([one["index"] for one in run.later() if one["invalid_reasons"]], [])

    def test_ATraceHasItsKernelsAndOurIterationsOfThatTimeAreInvalid(self):
        with tempfile.TemporaryDirectory() as folder:
            try:
                daemon = Daemon(pathlib.Path(folder, "trace.json"))
            except OSError as error:
                self.skipTest(f"a daemon of that name runs here: {error}")
            daemon.start()
            run = program("traced_from_outside", f"{folder}/trace*.json", KINETO_USE_DAEMON="1")
            daemon.end()
        self.assertEqual(run.status, 0, run.stderr)
        self.assertGreater(run.found()["kernels"], 0)
        self.assertTrue([line for line in run.ours if "another profiler has taken its buffers" in line], run.ours)
        told = [note for note in run.notes if note["code"] == "stood_aside"]
        self.assertEqual(len(told), 1, run.notes)
        self.assertIn(["stood_aside"], [one["invalid_reasons"] for one in run.later()])


if __name__ == "__main__":
    unittest.main()
