# SPDX-License-Identifier: Apache-2.0
"""NVTX that leads to CUPTI's library, as some users set it: its ranges come as CUPTI's records, once."""
import os
import pathlib
import unittest

from support import INJECT, JOB, SIMGPU, Folder, run, same_identity

CUPTI = SIMGPU / "libcupti.so.13"
TRAINER = pathlib.Path(os.environ.get("LIVE_TRAINER", ""))


def traced(command, nvtx, **variables):
    """A run whose NVTX leads to `nvtx`; its iterations."""
    with Folder() as folder:
        done = run(command, preload=False, CUDA_INJECTION64_PATH=INJECT, NVTX_INJECTION64_PATH=nvtx,
                   GPUDIAG_DIR=folder.path, **variables)
        return done, folder.iterations(), {n["code"]: n["text"] for n in folder.lines() if n.get("event") == "note"}


def ranges(iterations):
    """How often the host was in each range that is evidence of something, over all iterations."""
    counts = {}
    for iteration in iterations:
        for evidence in iteration["evidence"]:
            if not evidence["what"].startswith("cuda") and evidence["cause"] in ("data_loading", "checkpoint"):
                counts[evidence["what"]] = counts.get(evidence["what"], 0) + evidence["count"]
    return counts


class NvtxByCupti(unittest.TestCase):
    maxDiff = None

    def test_the_example_trainer_has_the_ledger_that_it_has_by_our_injection(self):
        if not TRAINER.is_file():
            self.skipTest("the example trainer is not built")
        command = [TRAINER, "--iterations", 40, "--trouble", "loader"]
        ours, by_us, _ = traced(command, INJECT)
        theirs, by_cupti, _ = traced(command, CUPTI)
        self.assertEqual((theirs.status, theirs.stdout), (ours.status, ours.stdout))
        self.assertEqual([i["label"] for i in by_cupti], [i["label"] for i in by_us])
        self.assertEqual({i["opened_by"] for i in by_cupti}, {i["opened_by"] for i in by_us})
        self.assertTrue(all(same_identity(i) and i["valid"] for i in by_cupti))
        self.assertEqual(ranges(by_cupti), ranges(by_us))  # none twice, none missing
        self.assertGreater(sum(ranges(by_cupti).values()), 30)
        for iterations in (by_us, by_cupti):
            idle = {}
            for iteration in iterations[2:-1]:
                for cause, time_ns in iteration["idle"].items():
                    idle[cause] = idle.get(cause, 0) + time_ns
            self.assertEqual(max(idle, key=idle.get), "data_loading_ns", idle)

    def test_iterations_are_found_by_its_ranges(self):
        done, iterations, _ = traced([JOB, "train", 30], CUPTI)
        self.assertEqual([i["label"] for i in iterations[1:-1]], [f"iter {n}" for n in range(1, 29)], done.ours)
        self.assertEqual(sum(i["operations"] for i in iterations), 30 * 9)

    def test_switched_off_nothing_is_taken_from_it(self):
        _, iterations, _ = traced([JOB, "train", 30], CUPTI, GPUDIAG_NVTX="off")
        self.assertFalse([i for i in iterations if i["label"].startswith("iter ")])

    def test_a_tool_of_another_kind_is_left_alone_and_named(self):
        _, iterations, notes = traced([JOB, "train", 30], "/nowhere/libsomebody.so")
        self.assertFalse([i for i in iterations if i["label"].startswith("iter ")])
        self.assertIn("libsomebody.so", notes["nvtx_elsewhere"])


if __name__ == "__main__":
    unittest.main()
