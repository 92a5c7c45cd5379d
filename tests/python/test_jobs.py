# SPDX-License-Identifier: Apache-2.0
"""The job comes first: what it prints, how it ends and what becomes of it are as without us."""
import pathlib
import re
import shutil
import socket
import sys
import tempfile
import unittest

import support
from support import program, python


class Ends(unittest.TestCase):
    def test_LossesAndStatusAreTheSameAsWithoutUs(self):
        bare = program("steps", how="bare")
        for how in ("run", "import"):
            run = program("steps", how=how, TEST_IMPORT="after" if how == "import" else None)
            self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout))

    def test_AnExceptionInTheLoopEndsTheJobAsItWould(self):
        bare = program("exception", how="bare")
        run = program("exception")
        self.assertEqual((run.status, bare.status), (1, 1))
        self.assertEqual(run.stderr, bare.stderr)
        self.assertEqual(run.numbers()[:12], list(range(12)))

    def test_CtrlCIsTheSameAndLeavesAReport(self):
        bare = program("interrupted", how="bare", interrupt_at="step\nstep\nstep\n")
        run = program("interrupted", how="import", interrupt_at="step\nstep\nstep\n", TEST_IMPORT="after")
        self.assertEqual(run.status, bare.status)
        self.assertIn("KeyboardInterrupt", run.stderr)
        self.assertGreater(len(run.iterations), 0)

    def test_OsExitKeepsWhatHadClosed(self):
        run = program("leave_at_once")
        self.assertEqual(run.status, 3)
        self.assertGreaterEqual(len(run.numbers()), 5)

    def test_FaulthandlerAndThreadsWithStreams(self):
        run = python("-X", "faulthandler", support.PROGRAMS, "threads")
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.numbers()[:12], list(range(12)))


# Where a loader takes the batch of a worker: at one line of torch's if it had come before it was asked for, at
# another if it had to be waited for.
TAKEN_AT = re.compile(r'(?m)^(  File ".*dataloader\.py", line )\d+(, in _next_data)(?:\n    .*)*')


class Traces(unittest.TestCase):
    """What a job sees and prints of its own functions has nothing of us in it."""

    def both(self, *arguments, **options):
        """The run with us, and the stderr of both without the clocks and process numbers of a log line."""
        run, bare = program(*arguments, **options), program(*arguments, how="bare", **options)
        self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout), run.stderr)
        return run, *(re.sub(r"(?m)^W\d+ \S+ +\d+ ", "W ", one.stderr) for one in (run, bare))

    @unittest.skipIf(sys.version_info < (3, 11), "`raise` puts the frame back")
    def test_TracebacksAreThoseOfTheJobAlone(self):
        for where in ("loader", "workers", "save", "train", "scaler"):
            with self.subTest(where):
                run, ours, theirs = self.both("fails", where)
                self.assertEqual(run.status, 1)
                self.assertIn("Traceback", theirs)
                self.assertEqual(TAKEN_AT.sub(r"\1N\2", ours), TAKEN_AT.sub(r"\1N\2", theirs))

    @unittest.skipIf(sys.version_info < (3, 11), "`raise` puts the frame back")
    def test_ATorchThatCannotBeImportedFailsAsItWould(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "torch.py").write_text("raise OSError('no libcudart')\n")
            run, bare = (python("-c", "import torch", PYTHONPATH=folder, how=how) for how in ("run", "bare"))
        self.assertEqual((run.status, run.stderr), (bare.status, bare.stderr))
        self.assertIn("no libcudart", bare.stderr)

    def test_WarningsNameTheLineOfTheScript(self):
        _, ours, theirs = self.both("warned")
        self.assertIn("programs.py:", theirs)
        self.assertEqual(ours, theirs)

    def test_WrappedFunctionsArePickledAndInspectedAsTheOriginals(self):
        run, *_ = self.both("looked_at")
        self.assertEqual(run.found()["pickled"], [True] * 4)

    def test_ACompiledStepIsMarkedAndCompilesAsWithoutUs(self):
        run, ours, theirs = self.both("compiled_step", "own")
        self.assertEqual(ours, theirs)
        self.assertEqual(run.numbers()[:12], list(range(12)))
        # One graph without a break: no mark of ours may be in it.
        run, ours, theirs = self.both("compiled_step", "whole")
        self.assertEqual((run.status, ours), (0, theirs))


class Imports(unittest.TestCase):
    def test_BeforeAndAfterTorchAreTheSame(self):
        for when in ("before", "after"):
            run = program("steps", how="import", TEST_IMPORT=when)
            self.assertEqual(run.status, 0, run.stderr)
            self.assertEqual(run.numbers()[:12], list(range(12)), when)

    def test_ImportAndSessionsBesideThreadsThatWantTheGil(self):
        run = python("-c", """if True:
            import os, threading, torch
            going = True
            def spin():
                while going: pass
            for _ in range(4): threading.Thread(target=spin, daemon=True).start()
            work = torch.ones(1 << 20, device="cuda")
            import gpudiag.torch
            for _ in range(3):
                gpudiag.torch.start()
                for _ in range(5):
                    work.add_(1)
                    gpudiag.torch.step()
                gpudiag.torch.stop()
            going = False
            print("done", flush=True)
            os._exit(0)
            """, how="import")
        self.assertEqual((run.status, run.stdout), (0, "done\n"), run.stderr)

    def test_NoHooksWithoutSiteStillRuns(self):
        for flags in (["-I"], ["-E"], ["-S"]):
            script = "print('there')" if flags == ["-S"] else "import torch; print('there')"
            run = python(*flags, "-c", script)
            self.assertEqual((run.status, run.stdout), (0, "there\n"), run.stderr)

    def test_WithoutTorchMarksAndRangesWork(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "torch.py").write_text("raise ImportError('none here')\n")
            run = python("-c", "import gpudiag.torch as g\nwith g.range('x'): g.step()\nprint(g.info()['torch'], g.active())\n"
                         "print(g.info()['operators'])", how="import", PYTHONPATH=folder)
        self.assertEqual((run.status, run.stdout),
                         (0, "None True\nnot loaded: no hooks into PyTorch were set\n"), run.stderr)
        self.assertIn("gpudiag torch: PyTorch is not installed here; marks and ranges work, hooks do not", run.ours)

    def test_ATorchWithoutCudaIsSaidOnceAndLeftAlone(self):
        script = ("import torch; torch.version.cuda = None\nimport gpudiag.torch as g\n"
                  "from torch.utils.data.dataloader import _BaseDataLoaderIter as i\n"
                  "print(g.active(), i.__next__.__module__, g.info()['hooks'])")
        run = python("-c", script, how="import")
        self.assertEqual((run.status, run.stdout), (0, "False torch.utils.data.dataloader False\n"), run.stderr)
        self.assertEqual([line for line in run.ours if "no GPU activity" in line],
                         ["gpudiag torch: no GPU activity: this PyTorch is built without CUDA"])

    def test_WithoutTheLibraryTheScriptRuns(self):
        bare = program("steps", how="bare")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(support.PACKAGE / "gpudiag", pathlib.Path(folder, "gpudiag"))
            run = program("steps", how="bare", TEST_IMPORT="after", PYTHONPATH=folder)
        self.assertEqual((run.status, run.stdout), (0, bare.stdout), run.stderr)
        self.assertEqual(len(run.ours), 1, run.ours)
        self.assertTrue(run.ours[0].startswith("gpudiag cannot start: libgpudiag.so.0 is missing"), run.ours)

    def test_NothingStartsInAProcessThatUsesNoCuda(self):
        run = program("no_cuda")
        self.assertEqual(run.status, 0)
        self.assertEqual(run.files, [])
        self.assertFalse([line for line in run.ours if line.startswith("gpudiag rank")], run.ours)

    def test_TheUsersOwnSitecustomizeRunsToo(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "sitecustomize.py").write_text("print('theirs', __name__)\n")
            run = python("-c", "import sys, sitecustomize; print(sitecustomize.__file__.startswith(%r), "
                         "[p for p in sys.path if p.endswith('_inject')])" % folder, PYTHONPATH=folder)
        self.assertEqual(run.stdout, "theirs sitecustomize\nTrue []\n", run.stderr)

    def test_AFailingSitecustomizeOfTheUsersFailsAsItWould(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "sitecustomize.py").write_text("raise ValueError('theirs')\n")
            found = [python("-c", "print('on')", PYTHONPATH=folder, how=how) for how in ("bare", "run")]
        self.assertEqual([run.stdout for run in found], ["on\n", "on\n"])
        for run in found:
            self.assertIn("ValueError: theirs", run.stderr)

    def test_OtherPythonsOfTheJobImportNothingOfOurs(self):
        script = ("import subprocess, sys; print(subprocess.run([sys.executable, '-c', "
                  "'import sys; print(sorted(m for m in sys.modules if m.startswith((\"gpudiag\", \"ctypes\", \"torch\"))))'],"
                  "capture_output=True, text=True).stdout, end='')")
        self.assertEqual(python("-c", script).stdout, "[]\n")


class Ranks(unittest.TestCase):
    """Of several processes those that train have a ledger each, and nobody else has."""

    def check(self, run):
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual([name.split(".")[0] for name in run.files], ["rank0", "rank1"])
        for rank in (0, 1):
            numbers = [one["index"] for one in run.of("train") if one["rank"] == rank and one["opened_by"] == "optimizer"]
            self.assertEqual(numbers[:12], list(range(12)))
        self.assertEqual([rank["rank"] for rank in run.report["ranks"]], [0, 1])
        self.assertFalse([line for line in run.ours if "another file" in line], run.ours)

    def test_Torchrun(self):
        self.check(python("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, support.PROGRAMS,
                          "ranks", SIMGPU_DEVICES=2))

    def test_ALauncherThatAsksForTheNumberOfDevicesIsNoRank(self):
        self.check(python("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "gpu", support.PROGRAMS,
                          "ranks", SIMGPU_DEVICES=2))

    def test_RanksThatMultiprocessingSpawns(self):
        self.check(self.started_by("spawn", "run"))

    def test_RanksThatMultiprocessingForks(self):
        for how in ("run", "import"):
            run = self.started_by("fork", how, TEST_IMPORT="after" if how == "import" else None)
            self.assertEqual(run.status, 0, run.stderr)
            self.assertEqual([name.split(".")[0] for name in run.files], ["rank0", "rank1"], how)

    def started_by(self, method, how, **variables):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        return program("started_ranks", method, how=how, SIMGPU_DEVICES=2, TEST_PORT=port, **variables)


class Package(unittest.TestCase):
    def test_OnIterationAndTheFilesAgree(self):
        run = program("on_iteration", how="import")
        self.assertEqual(run.status, 0, run.stderr)
        found = run.found()
        self.assertGreaterEqual(len(found["seen"]), 11)
        files = {(one["phase"], one["index"]): one for one in run.iterations}
        for seen in found["seen"]:
            same = files[seen["phase"], seen["index"]]
            self.assertEqual({f"{cause}_ns": time for cause, time in seen["idle"].items()}, same["idle"])
            for name in ("wall_ns", "compute_ns", "idle_ns", "opened_by", "phase", "partial", "valid"):
                self.assertEqual(seen[name], same[name])
        self.assertEqual(found["last"]["opened_by"], "optimizer")
        self.assertEqual(found["failures"], len(found["seen"]))
        self.assertEqual(len([line for line in run.ours if "on_iteration:" in line]), 1, run.ours)

    def test_ACallbackThatLeavesEndsNeitherTheJobNorTheOtherCallbacks(self):
        run = program("leaving_callback", how="import")
        self.assertEqual(run.status, 0, run.stderr)
        self.assertGreaterEqual(run.found()["seen"], 11)
        self.assertEqual(run.found()["failures"], run.found()["seen"])

    def test_ProfileGivesAReport(self):
        run = program("report", how="import")
        self.assertEqual(run.status, 0, run.stderr)
        report = run.found()["report"]
        self.assertEqual(report["schema"], "gpudiag.report/1")
        self.assertEqual(report["findings"][0]["cause"], "data_loading")
        self.assertTrue(run.found()["active"])  # that of the import runs on

    def test_OptionsThatComeTooLateAreSaidToBeOfNoUse(self):
        run = python("-c", """if True:
            import os, torch, gpudiag.torch
            torch.ones(1, device="cuda")
            print(gpudiag.torch.start(log="off", dir="elsewhere"), flush=True)
            os._exit(0)
            """, how="import")
        self.assertEqual((run.status, run.stdout), (0, "True\n"), run.stderr)
        self.assertIn("gpudiag torch: a session is running already, its options stand; not used: dir, log", run.ours)

    def test_ASessionBeforeTheDriverIsLoadedRecordsAllTheSame(self):
        run = python("-c", """if True:
            import os, time, torch, gpudiag.torch
            gpudiag.torch.start()
            work = torch.ones(1 << 20, device="cuda")
            time.sleep(0.6)
            for _ in range(20):
                work.add_(1)
                gpudiag.torch.step()
            torch.cuda.synchronize()
            gpudiag.torch.stop()
            print(gpudiag.torch.last() is not None, flush=True)
            os._exit(0)
            """, how="import")
        self.assertEqual((run.status, run.stdout), (0, "True\n"), run.stderr)

    def test_WrongArgumentsAreExceptionsAndNothingElseIs(self):
        run = program("arguments", how="import")
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.found(), {
            "raised": ["TypeError", "TypeError", "TypeError", "ValueError", "ValueError", "TypeError", "TypeError",
                       "TypeError", "TypeError"],
            "total": 3, "name": "decorated", "doc": "Doc."})

    def test_MemoryIsFlatOverAThousandSessions(self):
        run = program("cycles", 1000, how="import", timeout=800, GPUDIAG_DIR="")
        self.assertEqual(run.status, 0, run.stderr)
        self.assertLess(run.found()["grown"], 4 << 20)
        self.assertEqual(run.found()["clean"], "torch.utils.data.dataloader")
        self.assertFalse(run.found()["active"])


if __name__ == "__main__":
    unittest.main()
