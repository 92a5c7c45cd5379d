# SPDX-License-Identifier: Apache-2.0
"""Loaders and trainers of others: from PyPI (tools/simgpu/torch/make_extras), and stand-ins for what
needs hardware."""
import os
import pathlib
import tempfile
import textwrap
import unittest

from support import PROGRAMS, program, python, shares

EXTRAS = os.environ["GPUDIAG_TORCH_EXTRAS"]


class StandIns(unittest.TestCase):
    def run_with(self, name, files):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(textwrap.dedent(text))
            run = program(name, PYTHONPATH=folder)
        self.assertEqual(run.status, 0, run.stderr)
        return run

    def test_DaliIsWaitedFor(self):
        run = self.run_with("dali", {"nvidia/dali/plugin/pytorch.py": """
            import time, torch
            class DALIGenericIterator:
                def __init__(self, count): self.left = count
                def __iter__(self): return self
                def __next__(self):
                    if self.left == 0: raise StopIteration
                    self.left -= 1
                    time.sleep(0.02)
                    return torch.zeros(4, 64)
            """, "nvidia/dali/__init__.py": "", "nvidia/dali/plugin/__init__.py": ""})
        idle, evidence = shares(run.later())
        self.assertEqual(max(idle, key=idle.get), "data_loading", evidence)
        self.assertIn("wait for batch: DALIGenericIterator", {key[2] for key in evidence})

    def test_DeepSpeedsEngineEndsAnIterationAtItsBoundary(self):
        run = self.run_with("deepspeed", {"deepspeed/runtime/engine.py": """
            class DeepSpeedEngine:
                def __init__(self, model, optimizer, groups, accumulation):
                    self.optimizer, self.groups, self.accumulation, self.calls = optimizer, groups, accumulation, 0
                def is_gradient_accumulation_boundary(self):
                    return (self.calls + 1) % self.accumulation == 0
                def step(self):
                    if self.is_gradient_accumulation_boundary():
                        for _ in range(self.groups): self.optimizer.step()
                    self.calls += 1
            """, "deepspeed/__init__.py": "", "deepspeed/runtime/__init__.py": ""})
        self.assertEqual(run.numbers()[:12], list(range(12)))
        self.assertLessEqual(len(run.numbers()), 13)


class Packages(unittest.TestCase):
    def leading(self, name, *arguments):
        run = program(name, *arguments, PYTHONPATH=EXTRAS)
        self.assertEqual(run.status, 0, run.stderr)
        idle, evidence = shares(run.later())
        return max(idle, key=idle.get), {key[2] for key in evidence}, run

    def test_StatefulDataLoader(self):
        for workers in (0, 2):
            cause, names, _ = self.leading("stateful", workers)
            self.assertEqual(cause, "data_loading", names)
            self.assertTrue([name for name in names if name.endswith("__next__")], names)

    def test_TheReportAsAFrameOfPandasHasARowForEachIteration(self):
        run = program("frame", how="import", TEST_IMPORT="after", PYTHONPATH=EXTRAS)
        self.assertEqual(run.status, 0, run.stderr)
        found = run.found()
        self.assertEqual(found["rows"], len(run.iterations))
        self.assertEqual(found["trained"], run.numbers())
        self.assertEqual(found["wall"], sum(one["wall_ns"] for one in run.iterations))
        self.assertIn("idle.data_loading_ns", found["columns"])

    def test_WebDataset(self):
        cause, names, _ = self.leading("webdataset")
        self.assertEqual(cause, "data_loading", names)

    def test_HuggingFaceDatasets(self):
        cause, names, _ = self.leading("datasets")
        self.assertEqual(cause, "data_loading", names)
        self.assertIn("datasets.iterable_dataset.IterableDataset", names)

    def test_DistributedCheckpoint(self):
        cause, names, _ = self.leading("distributed_checkpoint")
        self.assertEqual(cause, "checkpoint", names)

    def test_AccelerateLaunchStartsRanksWhoseSaveStateIsACheckpoint(self):
        run = python("-m", "accelerate.commands.accelerate_cli", "launch", "--num_processes", "2", PROGRAMS, "accelerated",
                     SIMGPU_DEVICES="2", PYTHONPATH=EXTRAS)
        self.assertEqual(run.status, 0, run.stderr)
        for rank in (0, 1):
            mine = [one for one in run.later() if one["rank"] == rank]
            self.assertEqual([one["index"] for one in mine][:11], list(range(1, 12)))
            self.assertIn(("checkpoint", "", "Accelerator.save_state"), shares(mine)[1])
        self.assertEqual(len(run.files), 2)  # the launcher is no rank

    def test_LightningLogsTheSharesAndItsValidationIsApart(self):
        run = program("lightning", how="import", PYTHONPATH=EXTRAS)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertIn("gpudiag/idle_data_loading", run.found()["columns"])
        # Two batches an epoch; what follows the last mark of all is not one.
        self.assertEqual([one["index"] for one in run.of("evaluation")][:5], [12, 12, 24, 24, 36])
        self.assertEqual(run.numbers()[:36], list(range(36)))

    def test_TransformersLogsTheShares(self):
        run = program("transformers", how="import", PYTHONPATH=EXTRAS)
        self.assertEqual(run.status, 0, run.stderr)
        logged = [entry for entry in run.found()["history"] if "gpudiag/idle_data_loading" in entry]
        self.assertGreater(len(logged), 0)
        self.assertEqual(run.numbers()[:36], list(range(36)))


if __name__ == "__main__":
    unittest.main()
