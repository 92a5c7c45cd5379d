# SPDX-License-Identifier: Apache-2.0
"""Ranks of one PyTorch job: what rank 0 says of the others, and waits for them on the host."""
import re
import unittest

import examples
import support
from support import HERE, python


def torchrun(*arguments, **options):
    return python("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, *arguments, SIMGPU_DEVICES=2,
                  OMP_NUM_THREADS=1, **options)


class SlowRank(unittest.TestCase):
    def test_IsNamedOnRankZerosLogWhileTheJobRuns(self):
        run = examples.run_example("ddp", "--slow-rank", "1", "--slow-ms", "80", steps=100)
        self.assertEqual(run.status, 0, run.stderr)
        said = [line for line in run.ours if line.startswith("gpudiag rank ") and " slowest rank" in line]
        self.assertTrue(said, run.ours)
        self.assertTrue(all(line.startswith("gpudiag rank 0 ") for line in said), said)
        named = [line for line in said if "slowest rank 1: " in line]
        self.assertGreaterEqual(len(named), len(said) / 2, said)
        late = float(re.search(r"\+([0-9.]+) ms", named[-1]).group(1))
        self.assertGreater(late, 30)  # of the 80 ms, what the GPU's own work does not hide
        self.assertTrue(all(" ms host" in line for line in named), named)
        self.assertTrue(any(note["code"] == "slowest_rank" and note["rank"] == 0 for note in run.notes), run.notes)


class HostWaits(unittest.TestCase):
    """For gloo and the store, on the host, with an idle GPU: communication_wait."""

    def check(self, how):
        run = torchrun(HERE / "host_waits.py", how)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.stdout.count("trained"), 2)
        waited = [one for one in run.later() if one["rank"] == 0 and one["index"] >= 3]
        idle, _ = support.shares(waited)
        self.assertGreater(len(waited), 8)
        self.assertGreater(idle["communication_wait"] / len(waited), 25e6, idle)
        self.assertGreater(idle["communication_wait"], 0.7 * sum(idle.values()), idle)

    def test_OfABarrier(self):
        self.check("barrier")

    def test_OfAnAllReduceOnTheCpu(self):
        self.check("all_reduce")

    def test_OfTheStore(self):
        self.check("store")


if __name__ == "__main__":
    unittest.main()
