# SPDX-License-Identifier: Apache-2.0
"""The ledger against the truth of the same run, a test for each trouble of the example trainer.

Environment: GPUDIAG_BUILD, the folder of the build. Both sides of each comparison are of one run, so a busy
machine changes what is found and not whether it is right.
"""
import os
import pathlib
import unittest

from live_judge import judge_runs
from live_run import TROUBLES, run_trainer


class Truth(unittest.TestCase):
    maxDiff = None


def add_test(name, trouble):
    def test(self):
        verdict = judge_runs(lambda: run_trainer(pathlib.Path(os.environ["GPUDIAG_BUILD"]), trouble))
        self.assertEqual(verdict.faults, [], "\n".join(str(row) for row in verdict.rows))

    setattr(Truth, f"test_{name}", test)


for _name, _trouble in TROUBLES.items():
    add_test(_name, _trouble)

if __name__ == "__main__":
    unittest.main()
