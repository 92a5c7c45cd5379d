# SPDX-License-Identifier: Apache-2.0
"""Several real processes with NCCL on the simulated GPU: what rank 0 says of the others while they run, what
records say of each collective, and what stands in the truth of the same run."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

LIB = pathlib.Path(os.environ["GPUDIAG_LIB"])
SIMGPU = pathlib.Path(os.environ["SIMGPU_LIB"])
TRAINER = os.environ["NCCL_TRAINER"]
INJECT = LIB / "libgpudiag_inject.so"


class Run:
    def __init__(self, *arguments, timeout=200, **variables):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            environment = {k: v for k, v in os.environ.items()
                           if not k.startswith(("GPUDIAG_", "SIMGPU_", "CUDA_INJ", "NVTX_INJ", "NCCL_", "RANK", "WORLD"))}
            environment.update(LD_LIBRARY_PATH=str(SIMGPU), CUDA_INJECTION64_PATH=str(INJECT),
                               NVTX_INJECTION64_PATH=str(INJECT), GPUDIAG_DIR=str(folder / "out"),
                               GPUDIAG_ITERATION="^iteration$", SIMGPU_DEVICES="4", SIMGPU_TRUTH=str(folder / "truth.%p"),
                               SIMGPU_COSTS="kernel occupy arg0=u64; kernel train_layer ns=300000")
            environment.update({k: str(v) for k, v in variables.items() if v is not None})
            done = subprocess.run([TRAINER, *map(str, arguments)], env=environment, capture_output=True, text=True,
                                  timeout=timeout)
            self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
            self.lines = [line for line in done.stderr.splitlines() if line.startswith("gpudiag ")]
            self.iterations, self.notes, self.pids = {}, {}, {}
            for file in sorted((folder / "out").glob("rank*.jsonl")):
                rank, pid = map(int, re.match(r"rank(\d+)\.pid(\d+)", file.name).groups())
                self.pids[rank] = pid
                records = [json.loads(line) for line in file.read_text().splitlines()]
                self.iterations[rank] = [r for r in records if r["schema"] == "gpudiag.iteration/1"]
                self.notes[rank] = [r for r in records if r.get("event") == "note"]
            recordings = [str(next((folder / "out").glob(f"rank{rank}.pid*.gpudiag"), "")) for rank in sorted(self.pids)]
            self.collectives_seen = []
            if all(recordings):
                printed = subprocess.run([os.environ["PRINT_COLLECTIVES"], *recordings], capture_output=True, text=True,
                                         timeout=60, check=True)
                self.collectives_seen = [json.loads(line) for line in printed.stdout.splitlines()]
            self.truth = {rank: [json.loads(line) for line in (folder / f"truth.{pid}").read_text().splitlines()]
                          for rank, pid in self.pids.items() if (folder / f"truth.{pid}").exists()}

    def said(self, pattern):
        return [line for line in self.lines if re.search(pattern, line)]

    def collectives(self, rank):
        """Starts and ends of NCCL's kernels by the truth, in order."""
        kernels = [(r["start_ns"], r["end_ns"]) for r in self.truth[rank]
                   if r["type"] == "operation" and r["kind"] == "kernel" and "ncclDevKernel" in r["name"]]
        return sorted(kernels)


class Live(unittest.TestCase):
    """Rank 0's log while the job runs."""

    def slowest(self, run, rank):
        lines = run.said(r"^gpudiag rank 0 slowest rank ")
        self.assertTrue(lines, run.stderr[-3000:])
        named = [line for line in lines if f"slowest rank {rank}: " in line]
        self.assertGreaterEqual(len(named), len(lines) / 2, lines)
        return named

    def test_a_late_loader_on_one_rank_is_named_with_its_cause(self):
        run = Run("--ranks", 3, "--slow-rank", 2, "--trouble", "loader", "--ms", 40, "--iterations", 90)
        self.assertEqual(run.status, 0, run.stderr)
        lines = self.slowest(run, 2)
        self.assertTrue(all("data_loading" in line for line in lines), lines)
        late = float(re.search(r"\+([0-9.]+) ms", lines[-1]).group(1))
        self.assertGreater(late, 35)
        self.assertTrue(any(note["code"] == "slowest_rank" for note in run.notes[0]), run.notes[0])

    def test_a_slow_kernel_on_one_rank_is_compute(self):
        run = Run("--ranks", 2, "--slow-rank", 1, "--trouble", "compute", "--ms", 40, "--iterations", 90)
        lines = self.slowest(run, 1)
        self.assertIn("compute", lines[-1])

    def test_a_busy_host_on_one_rank_is_host(self):
        run = Run("--ranks", 2, "--slow-rank", 1, "--trouble", "host", "--ms", 40, "--iterations", 90)
        lines = self.slowest(run, 1)
        self.assertRegex(lines[-1], r" ms host")

    def test_ranks_with_the_switch_off_say_nothing_of_each_other(self):
        run = Run("--ranks", 2, "--slow-rank", 1, "--trouble", "loader", "--ms", 40, "--iterations", 60, GPUDIAG_PEERS="off")
        self.assertEqual(run.said("slowest"), [])
        self.assertEqual(run.status, 0)

    def test_a_collective_that_does_not_end_names_the_rank_that_has_not_come_and_its_host(self):
        run = Run("--ranks", 3, "--slow-rank", 1, "--trouble", "stall", "--ms", 8, "--iterations", 30, GPUDIAG_STUCK=3)
        self.assertEqual(run.status, 0, run.stderr)
        stuck = run.said("has not ended for")
        self.assertEqual(len(stuck), 1, run.stderr[-3000:])
        self.assertRegex(stuck[0], r"^gpudiag rank 0 all_reduce number 40 of a group of 3 has not ended for [3-6] s: "
                                   r"rank 1 has not come to it; rank 1: save_checkpoint for [3-7] s, 20 iterations ended")

    def test_a_rank_that_is_killed_stops_nobody_and_is_named(self):
        run = Run("--ranks", 3, "--slow-rank", 2, "--trouble", "die", "--at", 400, "--iterations", 4000)
        self.assertEqual(run.status, 128 + 9)
        self.assertEqual(len(run.said("rank 2 is gone without an end")), 1, run.stderr[-3000:])
        self.assertIn(0, run.iterations)

    def test_nothing_is_left_in_shared_memory(self):
        def left():
            return {name for name in os.listdir("/dev/shm") if name.startswith("gpudiag-peers-")}
        before = left()
        Run("--ranks", 2, "--iterations", 40)
        self.assertEqual(left() - before, set())


class Records(unittest.TestCase):
    """What is known of each collective, by source."""

    def check_split(self, run, ranks):
        """Waiting for the last to arrive and transfer, per rank, against the truth."""
        true = {rank: run.collectives(rank) for rank in range(ranks)}
        count = len(true[0])
        self.assertTrue(count and all(len(true[rank]) == count for rank in range(ranks)))
        for rank in range(ranks):
            seen = [one for one in run.collectives_seen if one["rank"] == rank]
            self.assertEqual(len(seen), count)
            self.assertTrue(all(one["matched"] for one in seen))
            last = [max(true[other][i][0] for other in range(ranks)) for i in range(count)]
            wait = sum(last[i] - true[rank][i][0] for i in range(count))
            transfer = sum(true[rank][i][1] - last[i] for i in range(count))
            whole = wait + transfer
            self.assertAlmostEqual(sum(one["wait_ns"] for one in seen), wait, delta=whole * 0.01)
            self.assertAlmostEqual(sum(one["transfer_ns"] for one in seen), transfer, delta=whole * 0.01)

    def test_without_the_profiler_bytes_and_communicator_come_from_nccls_ranges(self):
        run = Run("--ranks", 2, "--slow-rank", 1, "--trouble", "loader", "--ms", 3, "--iterations", 20, GPUDIAG_RECORD="on")
        self.assertEqual(run.status, 0, run.stderr)
        for rank in (0, 1):
            abouts = {one["about"] for one in run.collectives_seen if one["rank"] == rank}
            self.assertEqual(len(abouts), 1, abouts)
            self.assertRegex(abouts.pop(), r"^coll all_reduce bytes=4194304 type=float32 op=sum algo=ring proto=ll "
                                           rf"group=nccl:[0-9a-f]{{16}} size=2 rank={rank}$")
        self.check_split(run, 2)

    def test_the_profiler_tells_the_number_of_each_operation_and_changes_nothing_for_the_job(self):
        run = Run("--ranks", 3, "--slow-rank", 1, "--trouble", "host", "--ms", 3, "--iterations", 20, GPUDIAG_RECORD="on",
                  NCCL_PROFILER_PLUGIN=INJECT)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()), [f"rank {rank} trained 20 iterations" for rank in range(3)])
        for rank in range(3):
            seen = [one for one in run.collectives_seen if one["rank"] == rank]
            self.assertEqual([one["sequence"] for one in seen], list(range(40)))
            self.assertRegex(seen[0]["about"], r"^coll all_reduce bytes=4194304 type=float32 op=sum algo=ring proto=ll "
                                               rf"group=nccl:[0-9a-f]{{16}} size=3 rank={rank} channels=24$")
        self.check_split(run, 3)

    def test_where_nvtx_is_off_and_no_plugin_is_loaded_the_kernels_name_is_left(self):
        run = Run("--ranks", 2, "--iterations", 20, GPUDIAG_RECORD="on", GPUDIAG_NVTX="off")
        abouts = {one["about"] for one in run.collectives_seen}
        self.assertEqual(abouts, {"coll all_reduce type=float32 op=sum algo=ring proto=ll group=stream#0"})

    def test_a_plugin_of_the_users_is_kept(self):
        run = Run("--ranks", 2, "--iterations", 20, GPUDIAG_NCCL="on", NCCL_PROFILER_PLUGIN="none", GPUDIAG_RECORD="on")
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual({one["sequence"] for one in run.collectives_seen}, {-1})

    def test_switched_off_it_tells_nccl_that_it_wants_nothing(self):
        run = Run("--ranks", 2, "--iterations", 20, GPUDIAG_NCCL="off", NCCL_PROFILER_PLUGIN=INJECT, GPUDIAG_RECORD="on")
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual({one["sequence"] for one in run.collectives_seen}, {-1})


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
