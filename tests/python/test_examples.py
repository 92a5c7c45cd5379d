# SPDX-License-Identifier: Apache-2.0
"""The examples that people copy, each with the troubles it can bring in.

The troubles are large against what a busy machine does to a job, so the cause that leads the ledger
is theirs on any machine. Jobs also run without us, beside the other: what they print and how they end
must be the same. Each trouble is tried in single.py and ddp.py, with GPUDIAG_EXAMPLES=all in all of them; the
healthy job in all.
"""
import json
import pathlib
import re
import tempfile
import unittest

import examples
import support
from examples import SLOW_LAUNCHES, SLOW_MEMORY, ledger, run_example

ONE_GPU = ("single", "accumulate", "cuda_graphs", "lightning_trainer", "hf_trainer")
ALL = ONE_GPU + ("ddp",)


class Troubles(unittest.TestCase):
    def jobs(self, names, *switches, compared=("single", "ddp"), **options):
        """Runs each with us, the `compared` ones without us too, and gives its ledger."""
        for name in filter(examples.there, names) if compared == ALL else examples.chosen(names):
            with self.subTest(name):
                if name in compared:
                    bare, run = examples.both(name, *switches, **options)
                    self.assertEqual((run.status, run.stdout), (bare.status, bare.stdout), run.stderr)
                else:
                    run = run_example(name, *switches, **options)
                self.assertEqual(run.status, 0, run.stderr)
                self.assertRegex(run.stdout, r"^step 10 loss \d+\.\d{4}\n")
                found = ledger(run)
                self.assertGreaterEqual(found.iterations, examples.STEPS[name] - examples.WARM_UP - 1, run.ours)
                yield name, found, run

    def test_WithoutTroubleTheGpuWorks(self):
        for _, found, _ in self.jobs(ALL, compared=ALL):
            self.assertGreater(found.parts["compute"], found.parts["idle"], found)

    def test_SlowSamplesWithoutWorkersAreLoadedInline(self):
        for _, found, _ in self.jobs(ALL, "--workers", "0", "--sample-ms", "8"):
            self.assertEqual((found.leading(), found.sub_cause("data_loading")), ("data_loading", "inline"), found)

    def test_OneWorkerForSlowSamplesIsTooFew(self):
        for _, found, run in self.jobs(ALL, "--workers", "1", "--sample-ms", "12"):
            self.assertEqual(found.leading(), "data_loading", found)
            self.assertNotEqual(found.sub_cause("data_loading"), "inline")
            self.assertEqual(run.report["findings"][0]["cause"], "data_loading", found)

    def test_ReadingTheLossEachStepIsASyncThatCosts(self):
        # The metrics would be hidden if the loss were not read before them: either alone is to blame.
        for _, found, run in self.jobs(ALL, "--item-each-step", "--metrics-ms", "30"):
            self.assertIn(found.leading(), ("sync", "host"), found)
            self.assertIn("sync", [finding["cause"] for finding in run.report["findings"]], found)

    def test_TheSameMetricsCostNothingWhileTheHostIsAhead(self):
        for _, found, run in self.jobs(("single",), "--metrics-ms", "15"):
            self.assertGreater(found.parts["compute"], found.parts["idle"], found)

    def test_TinyKernelsAreLaunchOverhead(self):
        for _, found, _ in self.jobs(("single", "lightning_trainer", "hf_trainer", "ddp"), "--tiny-kernels", "500", "--width",
                                     "128", SIMGPU_COSTS=SLOW_LAUNCHES):
            self.assertEqual(found.leading(), "launch_overhead", found)

    def test_TinyKernelsInAGraphAreNone(self):
        for _, found, _ in self.jobs(("cuda_graphs",), "--tiny-kernels", "500", SIMGPU_COSTS=SLOW_LAUNCHES):
            self.assertGreater(found.parts["compute"], found.parts["idle"], found)

    def test_CheckpointsAreCheckpoints(self):
        for _, found, _ in self.jobs(ALL, "--checkpoint-every", "3", "--width", "1024"):
            self.assertEqual(found.leading(), "checkpoint", found)

    def test_AGarbageCollectionStormIsNamed(self):
        for _, found, _ in self.jobs(ALL, "--gc-storm"):
            self.assertEqual((found.leading(), found.sub_cause("host")), ("host", "garbage_collection"), found)

    def test_EmptyingTheCacheIsAllocation(self):
        for _, found, _ in self.jobs(("single", "accumulate", "lightning_trainer", "hf_trainer", "ddp"), "--empty-cache",
                                     SIMGPU_COSTS=SLOW_MEMORY):
            self.assertEqual(found.leading(), "allocation", found)

    def test_ASlowLoggerIsTheHosts(self):
        for name, found, run in self.jobs(ALL, "--logger-ms", "300"):
            self.assertEqual(found.leading(), "host", found)
            self.assertEqual(run.report["findings"][0]["cause"], "host", found)

    def test_ASlowRankIsIdleByItsHostAndTheOtherOneWaitsInCommunication(self):
        for _, waiting, run in self.jobs(("ddp",), "--slow-rank", "1", "--slow-ms", "150"):
            slow = ledger(run, rank=1)
            self.assertEqual(slow.leading(), "host", slow)
            self.assertGreater(slow.share("host"), 0.5, slow)
            self.assertGreater(waiting.parts["communication"], waiting.parts["idle"], waiting)


class Numbers(unittest.TestCase):
    """What the log, the file and on_iteration say of an iteration is the same."""

    OBSERVER = support.HERE / "observer.py"
    LINE = re.compile(r"gpudiag rank (?P<rank>\d+) iter (?P<index>\d+)  (?P<time>[\d.]+) (?P<unit>us|ms|s) \| "
                      r"compute (?P<compute>[\d.]+)% comm (?P<communication>[\d.]+)% copy (?P<copy>[\d.]+)% \| "
                      r"idle (?P<idle>[\d.]+)%:?(?P<causes>[^|]*)")
    SHORT = {"launch": "launch_overhead", "comm_wait": "communication_wait"}

    def observed(self, name, *switches):
        with tempfile.TemporaryDirectory() as folder:
            run = run_example(name, *switches, script=(self.OBSERVER,), GPUDIAG_LOG="every", OBSERVED=folder)
            self.assertEqual(run.status, 0, run.stderr)
            seen = [json.loads(line) for file in sorted(pathlib.Path(folder).iterdir())
                    for line in file.read_text().splitlines()]
        return run, seen

    def fits(self, parsed, one):
        """Whether a line is that of an iteration, as far as it is rounded."""
        unit = {"us": 1e3, "ms": 1e6, "s": 1e9}[parsed["unit"]]
        printed = {self.SHORT.get(cause, cause): float(share)
                   for cause, share in re.findall(r"([a-z_]+) ([\d.]+)", re.sub(r"\([^)]*\)", "", parsed["causes"]))}
        pairs = [(float(parsed[part]), one[f"{part}_ns"]) for part in ("compute", "communication", "copy")]
        pairs += [(printed.get(cause, 0), ns) for cause, ns in one["idle"].items()]
        # Idle is printed as the sum of its causes, each of which is rounded so that all add up to 100.
        return (abs(float(parsed["time"]) - one["wall_ns"] / unit) < 0.051 and
                abs(float(parsed["idle"]) - sum(printed.values())) < 0.001 and
                all(abs(share - 100 * ns / one["wall_ns"]) < 0.101 for share, ns in pairs))

    def check(self, name, *switches):
        run, seen = self.observed(name, *switches)
        told = {(one["rank"], one["index"]): one for one in seen if one["opened_by"] == "optimizer"}
        # The last one ends with the process, when no Python can be told any more.
        filed = [one for one in run.iterations if one["opened_by"] == "optimizer" and not one["partial"]]
        self.assertGreaterEqual(len(filed), examples.STEPS[name] - 2)
        for one in filed:
            same = told[(one["rank"], one["index"])]
            for field in ("wall_ns", "compute_ns", "communication_ns", "copy_ns", "idle_ns", "valid", "partial", "phase"):
                self.assertEqual(same[field], one[field], field)
            self.assertEqual({f"{cause}_ns": ns for cause, ns in same["idle"].items()}, one["idle"])
        lines = [parsed.groupdict() for parsed in map(self.LINE.match, run.ours) if parsed]
        for (rank, index), one in told.items():
            same = [line for line in lines if (int(line["rank"]), int(line["index"])) == (rank, index)]
            if one["valid"] and not one["partial"]:
                self.assertTrue(any(self.fits(line, one) for line in same), (same, one))

    def test_AgreeForOneGpu(self):
        for name in ("single", "accumulate", "cuda_graphs"):
            with self.subTest(name):
                self.check(name, "--workers", "0", "--sample-ms", "4")

    def test_AgreeForTrainersOfOthers(self):
        for name in filter(examples.there, ("lightning_trainer", "hf_trainer")):
            with self.subTest(name):
                self.check(name, "--logger-ms", "30")

    def test_AgreeForTwoRanks(self):
        self.check("ddp", "--logger-ms", "30")


class WithImport(unittest.TestCase):
    def test_SaysTheVerdictItself(self):
        run = run_example("with_import", "--workers", "0", "--sample-ms", "8", how="import", steps=30)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertRegex(run.stdout, r"step 30 loss \S+\ngpudiag: data_loading; the GPU was idle for [\d.]+ % of an iteration\n$")
        found = ledger(run)
        # Between windows: before the first step, and of what comes behind the last.
        self.assertEqual({one["opened_by"] for one in run.iterations if one["phase"] == "train"}, {"step"})
        self.assertEqual((found.leading(), found.sub_cause("data_loading")), ("data_loading", "inline"), found)

    def test_ItsRangeIsChargedAsItSays(self):
        run = run_example("with_import", "--metrics-ms", "150", how="import", steps=30)
        self.assertEqual(run.status, 0, run.stderr)
        found = ledger(run)
        self.assertEqual(found.leading(), "host", found)
        # What held it up there may be told too: `clock_nanosleep in metrics`.
        self.assertIn("metrics", [key[2].split(" in ")[-1] for key in found.charged if key[0] == "host"])

    def test_SwitchedOffItIsTheSameJobWithoutTheVerdict(self):
        run = run_example("with_import", how="import", steps=20, GPUDIAG_ENABLED="off")
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.stdout, run_example("single", how="bare", steps=20).stdout)
        self.assertEqual(run.files, [])


class Examples(unittest.TestCase):
    def test_HelpListsTheTroubles(self):
        run = support.python(examples.FOLDER / "single.py", "--help", how="bare")
        self.assertEqual(run.status, 0, run.stderr)
        for switch in ("--workers", "--item-each-step", "--tiny-kernels", "--checkpoint-every", "--gc-storm", "--slow-rank"):
            self.assertIn(switch, run.stdout)

    def test_AMissingTrainerIsNamed(self):
        for name, package in (("lightning_trainer", "lightning"), ("hf_trainer", "transformers")):
            hidden = f"import sys, runpy; sys.modules['{package}'] = None; sys.argv = ['{name}.py']; " \
                     f"sys.path.insert(0, '{examples.FOLDER}'); runpy.run_path('{examples.FOLDER / name}.py', run_name='__main__')"
            run = support.python("-c", hidden, how="bare")
            self.assertEqual(run.status, 1)
            self.assertIn(f"pip install {package}", run.stderr)


if __name__ == "__main__":
    unittest.main()
