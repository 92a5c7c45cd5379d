# SPDX-License-Identifier: Apache-2.0
"""The unmodified CUDA build of PyTorch on the simulated GPU.

Each test runs a program of programs.py in processes of its own and holds it against the truth that
the simulation wrote of that very run.
"""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(__file__).with_name("programs.py")
GEMM = "cutlass_80|nvjet_"

Run = collections.namedtuple("Run", "found truth status output")


def run(name, ranks=1, **environment):
    """Runs a program; what it found and the truth's objects, by rank."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable]
        if ranks > 1:
            command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                        str(ranks)]
        command += [str(PROGRAMS), name, folder]
        # Every rank of torchrun is a process, and so are its helpers: only ranks write the truth.
        wrapper = {"SIMGPU_DEVICES": str(max(ranks, 2)), "SIMGPU_TRUTH": f"{folder}/truth.%p",
                   "SIMGPU_NOISE": "0", "OMP_NUM_THREADS": "1", **environment}
        process = subprocess.run(command, env={**os.environ, **wrapper}, timeout=240,
                                 capture_output=True, text=True)
        found = [json.loads(path.read_text())
                 for path in sorted(pathlib.Path(folder).glob("found.*"))]
        truth = [[json.loads(line) for line in path.read_text().splitlines()]
                 for path in sorted(pathlib.Path(folder).glob("truth.*"))]
    return Run(found, [lines for lines in truth if any(l["type"] == "operation" for l in lines)],
               process.returncode, process.stdout + process.stderr)


def kernels(lines):
    return [l for l in lines if l["type"] == "operation" and l["kind"] == "kernel"]


def named(lines, pattern):
    return [k for k in kernels(lines) if re.search(pattern, k["name"])]


class Torch(unittest.TestCase):
    def run_program(self, name, **options):
        done = run(name, **options)
        self.assertEqual(done.status, 0, done.output)
        return done

    def test_sees_the_simulated_devices(self):
        found = self.run_program("devices").found[0]
        self.assertEqual(found, {"available": True, "count": 2, "name": "Simulated GPU",
                                 "nccl": [2, 30, 7], "cudnn": 92400})

    def test_linear_layers_run_five_products_a_step(self):
        truth = self.run_program("linear").truth[0]
        # Two forward, two for the weights, one for the hidden layer; three steps.
        self.assertEqual(len(named(truth, GEMM)), 15)

    def test_attention_runs_the_kernels_of_the_chosen_backend(self):
        truth = self.run_program("attention").truth[0]
        self.assertEqual(len(named(truth, "flash_fwd_kernel")), 1)
        self.assertEqual(len(named(truth, "flash_bwd_dq_dk_dv_loop")), 1)
        self.assertEqual(len(named(truth, "fmha_cutlassF")), 1)
        self.assertEqual(len(named(truth, "fmha_cutlassB")), 1)

    def test_attention_of_an_older_device_needs_no_cudnn(self):
        done = self.run_program("default_attention", SIMGPU_COMPUTE="8.9")
        self.assertEqual(done.found[0], {"capability": [8, 9]})
        self.assertEqual(len(named(done.truth[0], "flash_fwd_kernel")), 1)

    def test_convolutions_run_without_cudnn(self):
        truth = self.run_program("convolution").truth[0]
        self.assertGreater(len(named(truth, "im2col|conv|slow_conv")), 0)

    def test_autocast_runs_products_in_bfloat16(self):
        done = self.run_program("encoder_in_autocast")
        # Four linear layers, forward and twice backward, but no gradient of the input; two steps.
        self.assertEqual(len(named(done.truth[0], "nvjet_sm90_tst")), 2 * 11)
        self.assertEqual(len(named(done.truth[0], "cutlass_80")), 0)

    def test_adamw_runs_fused_and_foreach(self):
        truth = self.run_program("adamw").truth[0]
        self.assertEqual(len(named(truth, "FusedAdam")), 1)
        self.assertGreater(len(named(truth, "multi_tensor_apply_kernel")), 1)

    def test_what_is_copied_to_the_device_comes_back(self):
        done = self.run_program("copies")
        self.assertEqual(done.found[0], {"back": True, "item": 7.0})
        item = [l for l in done.truth[0] if l.get("copy") == "DtoH" or l.get("bytes") == 4]
        self.assertNotEqual(item, [])

    def test_a_loader_with_workers_pins_and_copies_every_batch(self):
        found = self.run_program("loader").found[0]["batches"]
        self.assertEqual(found, [[True, [float(8 * batch + i) for i in range(8)]]
                                 for batch in range(8)])

    def test_a_graph_of_a_step_replays_all_its_kernels(self):
        truth = self.run_program("graphs").truth[0]
        replayed = collections.Counter(k["node"] for k in kernels(truth) if k["graph"])
        self.assertGreater(len(replayed), 10)
        self.assertEqual(set(replayed.values()), {5})

    def test_the_profiler_links_every_kernel_to_its_operator(self):
        done = self.run_program("profiler")
        seen = done.found[0]["correlations"]
        self.assertGreater(len(seen), 10)
        self.assertEqual(done.found[0]["linked"], len(seen))
        # All that ran from the first profiled kernel on, and nothing else.
        first = min(seen)
        self.assertEqual(sorted(seen), sorted(k["correlation"] for k in kernels(done.truth[0])
                                              if k["correlation"] >= first))


class Collectives(unittest.TestCase):
    def run_ranks(self, name, **options):
        done = run(name, ranks=2, **options)
        self.assertEqual(done.status, 0, done.output)
        self.assertEqual(len(done.truth), 2)
        return done

    def assert_ends_agree(self, truth, pattern):
        """Kernels of a collective may start apart, but end at the same time on every rank."""
        ends = [[k["end_ns"] for k in named(lines, pattern)] for lines in truth]
        self.assertGreater(len(ends[0]), 0)
        self.assertEqual(ends[0], ends[1])

    def test_move_and_reduce_small_payloads(self):
        both = self.run_ranks("collectives").found
        for rank, found in enumerate(both):
            sums = {f"sum torch.{t}": [3, 6] for t in ("float32", "float16", "bfloat16", "int64")}
            expected = {**sums, "AVG": [2.5], "MAX": [3.0], "MIN": [2.0], "PRODUCT": [6.0],
                        "all_gather": [0, 10, 1, 11], "reduce_scatter": [[3, 4], [6, 9]][rank],
                        "broadcast": [6.0], "all_to_all": [[0, 10], [1, 11]][rank],
                        "exchange": [8.0 - rank], "objects": [{"rank": 0}, {"rank": 1}]}
            if rank == 1:
                expected["alone"] = [3.0]
            self.assertEqual(found, expected)

    def test_ddp_reduces_gradients_by_kernels_that_end_together(self):
        truth = self.run_ranks("ddp").truth
        reduces = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        self.assert_ends_agree(truth, reduces)
        self.assertEqual(len(named(truth[0], reduces)), 5)

    def test_fsdp_gathers_and_scatters(self):
        truth = self.run_ranks("fsdp").truth
        self.assert_ends_agree(truth, "ncclDevKernel_AllGather_RING_LL")
        self.assert_ends_agree(truth, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL")

    def test_work_in_a_graph_too(self):
        done = self.run_ranks("captured_collective")
        self.assertEqual([f["doubled thrice"] for f in done.found], [[8.0] * 4] * 2)

    def test_wait_for_a_slow_rank(self):
        truth = self.run_ranks("slow_rank", SIMGPU_NCCL_LATENCY_NS="8000",
                               SIMGPU_NCCL_BYTES_PER_S="4096000000").truth
        ranks = [named(lines, "AllReduce_Sum_f32")[-1] for lines in truth]
        self.assertEqual(ranks[0]["end_ns"], ranks[1]["end_ns"])
        early, late = sorted(ranks, key=lambda k: k["start_ns"])
        self.assertGreater(late["start_ns"], early["start_ns"] + 1000000)
        # 8 us and a quarter for the second rank, and 4096 bytes once over the link.
        self.assertEqual(late["end_ns"] - late["start_ns"], 8000 + 2000 + 1000)

    def test_leave_nothing_behind_when_a_rank_is_killed(self):
        before = set(pathlib.Path("/dev/shm").glob("simgpu-nccl-*"))
        done = run("killed", ranks=2)
        self.assertNotEqual(done.status, 0)
        self.assertIn(f"-{int(signal.SIGKILL)}", done.output)
        self.assertEqual(set(pathlib.Path("/dev/shm").glob("simgpu-nccl-*")) - before, set())


if __name__ == "__main__":
    unittest.main()
