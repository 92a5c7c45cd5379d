# SPDX-License-Identifier: Apache-2.0
"""Two published jobs with stragglers, of 128 and 8 GPUs: the guilty stage and the step time.

GPUDIAG_COMMAND names the command, GPUDIAG_TRACES_FOLDER the folder of the real traces.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

try:
    import pyarrow  # noqa: F401
    import parquet_job
except ImportError:
    parquet_job = None

TRACES = pathlib.Path(os.environ.get("GPUDIAG_TRACES") or os.environ["GPUDIAG_TRACES_FOLDER"]) / "collectives"


@unittest.skipUnless(parquet_job, "not run: needs pyarrow (pip install pyarrow)")
@unittest.skipUnless(TRACES.is_dir(), "not run: no collectives/*.parquet of ByteDance-Seed/StragglerAnalysis 8efcd7f3")
class Published(unittest.TestCase):
    def analyze(self, trial):
        """The report's comparison of ranks, the mean step of the table in s, and the published answers."""
        with tempfile.TemporaryDirectory() as folder:
            steps, length_us = parquet_job.write(TRACES / f"trace-{trial}.parquet", folder)
            out = subprocess.run([os.environ["GPUDIAG_COMMAND"], "analyze", folder, "-f", "json"], check=True,
                                 capture_output=True, timeout=300).stdout
        published = json.loads((TRACES / f"ms-{trial}.json").read_text())
        return json.loads(out)["collectives"], length_us / steps / 1e6, published

    def check(self, trial):
        job, step, published = self.analyze(trial)
        self.assertEqual(job["matching"]["matched"], job["matching"]["operations"])
        recorded = job["what_if"]["recorded_ns"] / len(job["iterations"]) / 1e9
        ours, theirs = abs(recorded / step - 1), abs(published["tori"] / step - 1)
        stage = job["culprits"][0]
        fixed = recorded - stage["cost_ns_per_iteration"] / 1e9
        print(f"{trial}: step {step:.4f} s; replayed {recorded:.4f} s ({100 * ours:.2f} % off, published "
              f"{published['tori']:.4f} s, {100 * theirs:.2f} %); without the stage {fixed:.3f} s, published "
              f"{published['trem']:.3f} s ({100 * (fixed / published['trem'] - 1):+.1f} %)")
        self.assertLess(ours, theirs)
        self.assertEqual(stage["kind"], "stage")
        return stage["ranks"], fixed / published["trem"] - 1

    # Both are put down to the last stage (Ms is the share of the slowdown it explains).
    def test_ofEightGpusTheLastStageIsGuiltyAndTheStepWithoutItIsThePublishedOne(self):
        ranks, off = self.check("ST")
        self.assertEqual(ranks, [6, 7])
        self.assertLess(abs(off), 0.0189)

    def test_ofAHundredAndTwentyEightGpusTheLastStageIsGuilty(self):
        ranks, _ = self.check("SE")
        self.assertEqual(ranks, list(range(64, 128, 2)))


if __name__ == "__main__":
    unittest.main()
