# SPDX-License-Identifier: Apache-2.0
"""The trainer on libtorch, which has gpudiag linked in and says itself what its steps are."""
import pathlib
import subprocess
import tempfile
import unittest

import examples
import support

PROGRAM = support.COMMAND.with_name("libtorch_trainer")
STEPS = 24


def train(*switches, steps=STEPS, **variables):
    with tempfile.TemporaryDirectory() as folder:
        ledger = pathlib.Path(folder) / "ledger"
        environment = support.clean_environment(LD_LIBRARY_PATH=examples.SIMGPU, OMP_NUM_THREADS=1, SIMGPU_NOISE=0,
                                                **{"GPUDIAG_DIR": ledger, **variables})
        command = [PROGRAM, "--steps", steps, "--checkpoint", f"{folder}/checkpoint.pt", *switches]
        done = subprocess.run([str(part) for part in command], env=environment, text=True, capture_output=True, timeout=300)
        ledger.mkdir(exist_ok=True)
        return support._read(done.returncode, done.stdout, done.stderr, ledger)


@unittest.skipUnless(PROGRAM.exists(), "built with GPUDIAG_BUILD_LIBTORCH_EXAMPLE only")
class Libtorch(unittest.TestCase):
    def ledger_of(self, *switches, **variables):
        run = train(*switches, **variables)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertRegex(run.stdout, r"^step 10 loss \d+\.\d{4}\nstep 20 loss \d+\.\d{4}\n$")
        found = examples.ledger(run)
        self.assertGreaterEqual(found.iterations, STEPS - examples.WARM_UP - 1, run.ours)
        return found, run

    def test_EachStepIsAnIteration(self):
        found, run = self.ledger_of()
        self.assertEqual([one["index"] for one in run.iterations if one["opened_by"] == "step"][:STEPS], list(range(STEPS)))
        self.assertGreater(found.parts["compute"], found.parts["idle"], found)

    def test_SwitchedOffItIsTheSameJob(self):
        on, off = train(), train(GPUDIAG_ENABLED="off")
        self.assertEqual((on.status, on.stdout, on.stderr), (0, off.stdout, off.stderr))
        self.assertEqual((off.ours, off.files), ([], []))

    def test_SlowSamplesAreDataLoading(self):
        for workers in ("0", "1"):
            found, _ = self.ledger_of("--workers", workers, "--sample-ms", "8")
            self.assertEqual(found.leading(), "data_loading", found)

    def test_ReadingTheLossEachStepIsASyncThatCosts(self):
        found, _ = self.ledger_of("--item-each-step", "--metrics-ms", "30")
        self.assertIn(found.leading(), ("sync", "host"), found)
        self.assertGreater(found.cost["sync"], 0.1 * found.wall, found)

    def test_TinyKernelsAreLaunchOverhead(self):
        found, _ = self.ledger_of("--tiny-kernels", "500", "--width", "128", SIMGPU_COSTS=examples.SLOW_LAUNCHES)
        self.assertEqual(found.leading(), "launch_overhead", found)

    def test_CheckpointsAreCheckpoints(self):
        found, _ = self.ledger_of("--checkpoint-every", "2", "--width", "1024")
        self.assertEqual(found.leading(), "checkpoint", found)

    def test_ASlowLoggerIsTheHosts(self):
        found, _ = self.ledger_of("--logger-ms", "150")
        self.assertEqual(found.leading(), "host", found)

    def test_WrongOptionsAreRefusedWithAReason(self):
        for switches, reason in ((("--workers", "-1"), "--workers needs a number from 0 to 1000000, not '-1'"),
                                 (("--nonsense",), "unknown option or missing value: '--nonsense'")):
            run = train(*switches)
            self.assertEqual(run.status, 2)
            self.assertIn(reason, run.stderr)


if __name__ == "__main__":
    unittest.main()
