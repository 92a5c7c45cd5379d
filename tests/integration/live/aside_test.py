# SPDX-License-Identifier: Apache-2.0
"""Beside another profiler of the process, which uses CUPTI as PyTorch's does: its trace is what it is
without us, ours goes on after it, and the time between is counted."""
import os
import pathlib
import subprocess
import unittest

from support import PROGRAMS, Folder, run, same_identity

NEIGHBOUR = PROGRAMS / "live_neighbour"


class Aside(unittest.TestCase):
    maxDiff = None

    def neighbours(self, folder, *arguments, **variables):
        """The job with us and without: it prints the same, so the neighbour's trace is the same."""
        bare = run([NEIGHBOUR, *arguments], preload=False)
        with_us = run([NEIGHBOUR, *arguments], GPUDIAG_DIR=folder.path, **variables)
        self.assertEqual(with_us.status, 0, with_us)
        self.assertEqual(with_us.stderr, "")
        return bare, with_us

    def check_iterations(self, iterations, last, gaps):
        """Valid outside of `gaps` ((first, past the last) of each, two iterations of grace behind them),
        invalid inside for that very reason; walls of after the first gap as they were before."""
        by_number = {int(i["label"].split()[1]): i for i in iterations if i["label"].startswith("iter ")}
        self.assertTrue(all(same_identity(i) for i in iterations))
        walls = {True: [], False: []}
        for number in range(1, last - 1):
            iteration = by_number[number]
            inside = any(first <= number < past for first, past in gaps)
            near = any(first - 1 <= number < past + 2 for first, past in gaps)
            if inside:
                self.assertIn("stood_aside", iteration["invalid_reasons"], iteration)
            elif not near:
                self.assertEqual(iteration["invalid_reasons"], [], iteration)
                self.assertEqual(iteration["operations"], 8, iteration)
                walls[number < gaps[0][0]].append(iteration["wall_ns"])
        # Each iteration sleeps for 2 ms: a wall in another clock would be far from it.
        for before in (True, False):
            median = sorted(walls[before])[len(walls[before]) // 2]
            self.assertGreater(median, 1_900_000)
            self.assertLess(median, 40_000_000)
        return by_number

    def test_told_of_it_we_hand_over_and_go_on(self):
        for extra in ((), ("finalize",)):
            with self.subTest(extra=extra), Folder() as folder:
                bare, with_us = self.neighbours(folder, 90, 30, 50, "told", *extra)
                self.assertEqual(with_us.stdout, bare.stdout)
                self.assertEqual(with_us.stdout, "kernels 160, of others 0, strange buffers 0, open buffers 0, refused 0\n")
                self.check_iterations(folder.iterations(), 90, [(30, 50)])
                self.assertEqual(sum("stood aside for the neighbour for" in line for line in with_us.ours), 1, with_us.ours)
                self.assertEqual(len(folder.notes("stood_aside")), 1)
                self.assertEqual(len(folder.notes("standing_aside")), 1)

    def test_a_recording_of_it_gives_the_very_iterations_of_the_run(self):
        command = pathlib.Path(os.environ.get("GPUDIAG_COMMAND", ""))
        if not command.is_file():
            self.skipTest("the gpudiag command is not built")
        with Folder() as folder:
            self.neighbours(folder, 400, 100, 150, "told", GPUDIAG_RECORD="on")
            recording = next(folder.path.glob("*.gpudiag"))
            live = next(folder.path.glob("*.jsonl")).read_bytes().splitlines()
            again = subprocess.run(
                [command, "analyze", recording, "--format", "jsonl"], capture_output=True, check=True
            ).stdout.splitlines()
            of = [[line for line in lines if b"gpudiag.iteration/1" in line] for lines in (live, again)]
            self.assertGreater(sum(b'"stood_aside"' in line for line in of[0]), 45)
            self.assertEqual(of[0], of[1])

    def test_twice_told_of_it_we_go_on_twice(self):
        with Folder() as folder:
            bare, with_us = self.neighbours(folder, 120, 20, 40, "told", "twice")
            self.assertEqual(with_us.stdout, bare.stdout)
            self.check_iterations(folder.iterations(), 120, [(20, 40), (60, 80)])
            self.assertEqual(len(folder.notes("stood_aside")), 2)

    def test_its_trace_is_the_same_when_we_hold_the_subscriber_and_it_is_ours_again(self):
        with Folder() as folder:
            bare, with_us = self.neighbours(folder, 90, 30, 50, "told", GPUDIAG_CALLBACKS="on")
            self.assertEqual(with_us.stdout, bare.stdout)
            by_number = self.check_iterations(folder.iterations(), 90, [(30, 50)])
            for number in (10, 70):
                seen = [e["what"] for e in by_number[number]["evidence"]]
                self.assertIn("cudaDeviceSynchronize", seen)

    def test_open_before_us_it_is_left_alone(self):
        with Folder() as folder:
            bare, with_us = self.neighbours(folder, 60, 0, 30, "told")
            self.assertEqual(with_us.stdout, bare.stdout)
            iterations = folder.iterations()
            valid = [i for i in iterations if i["valid"]]
            self.assertGreater(len(valid), 20, iterations)

    def test_untold_it_is_noticed_and_nothing_is_taken_back(self):
        with Folder() as folder:
            # Long enough to be noticed, by a job that NVTX alone marks.
            _, with_us = self.neighbours(folder, 2000, 300, 500)
            self.assertEqual(len(folder.notes("records_stopped")), 1, with_us.ours)
            self.assertEqual(len(folder.notes("stood_aside")), 1, with_us.ours)
            self.assertFalse([n for n in self.good(folder) if n > 302])
            self.assertGreater(len([n for n in self.good(folder) if n < 300]), 200)

    def test_untold_but_told_that_it_ended_we_go_on(self):
        for end in (310, 2000):  # before and after it is noticed
            with self.subTest(end=end), Folder() as folder:
                self.neighbours(folder, end + 400, 300, end, "asked")
                good = self.good(folder)
                self.assertGreater(sum(n > end + 5 for n in good), 300)
                self.assertFalse([n for n in good if 302 <= n < end])
                self.assertEqual(len(folder.notes("stood_aside")), 1)

    def test_untold_a_detached_cupti_is_taken_again_at_once(self):
        with Folder() as folder:
            _, with_us = self.neighbours(folder, 900, 300, 320, "finalize")
            notes = folder.notes("stood_aside")
            self.assertEqual(len(notes), 1, with_us.ours)
            self.assertIn("detached CUPTI", notes[0]["text"])
            good = self.good(folder)
            self.assertGreater(sum(n > 600 for n in good), 200)
            self.assertFalse([n for n in good if 302 <= n < 320])

    def test_untold_a_cupti_that_is_detached_late_is_taken_again(self):
        with Folder() as folder:
            # Noticed after some 1,300 iterations, detached after 2,000 and asked about within 10 s.
            _, with_us = self.neighbours(folder, 6500, 300, 2300, "finalize")
            self.assertEqual(len(folder.notes("records_stopped")), 1, with_us.ours)
            good = self.good(folder)
            self.assertGreater(sum(n > 2300 for n in good), 100, with_us.ours)
            self.assertFalse([n for n in good if 302 <= n < 2300])

    @staticmethod
    def good(folder):
        """Numbers of the iterations whose eight kernels were recorded and whose ledger is valid."""
        return [
            int(i["label"].split()[1])
            for i in folder.iterations()
            if i["valid"] and i["operations"] == 8 and i["label"].startswith("iter ")
        ]


if __name__ == "__main__":
    unittest.main()
