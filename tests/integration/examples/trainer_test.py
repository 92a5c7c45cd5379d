# SPDX-License-Identifier: Apache-2.0
"""Tests of the example trainers on the simulated GPU; CMakeLists.txt says how they are run.

Environment: GPUDIAG_BIN, the folder of the programs; SIMGPU_LIB, that of the simulated GPU.
"""
import collections
import json
import os
import subprocess
import tempfile
import unittest

LAYERS = 8
BATCH = 32768
INPUTS = 16
HIDDEN = 128
CLASSES = 16
PARAMETERS = (INPUTS + 1) * HIDDEN + (LAYERS - 2) * (HIDDEN + 1) * HIDDEN + (HIDDEN + 1) * CLASSES

Run = collections.namedtuple("Run", "status stdout stderr operations waits")


def run(program, *options, devices=1):
    """Runs the program on the simulated GPU; operations and waits are what really happened."""
    with tempfile.TemporaryDirectory() as folder:
        truth = os.path.join(folder, "truth.jsonl")
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": os.environ["SIMGPU_LIB"],
            "SIMGPU_TRUTH": truth,
            "SIMGPU_DEVICES": str(devices),
            "GPUDIAG_LOG": "off",
        }
        done = subprocess.run(
            [os.path.join(os.environ["GPUDIAG_BIN"], program), *options],
            env=environment, capture_output=True, text=True, check=False)
        lines = []
        if os.path.exists(truth):
            with open(truth, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
    operations = [line for line in lines if line["type"] == "operation"]
    waits = [line for line in lines if line["type"] == "wait"]
    return Run(done.returncode, done.stdout, done.stderr, operations, waits)


def train(*options, program="cuda_trainer", **more):
    done = run(program, "--iterations", "20", *options, **more)
    if done.status != 0:
        raise AssertionError(f"status {done.status}: {done.stderr}")
    return done


def kernels(done, name):
    """Launches of the kernel, in the order they started; names are mangled or not."""
    found = [op for op in done.operations if op["kind"] == "kernel" and name in op["name"]]
    return sorted(found, key=lambda op: op["start_ns"])


def copies(done, kind, size=None):
    found = [op for op in done.operations if op["kind"] == "memcpy" and op["copy"] == kind
             and size in (None, op["bytes"])]
    return sorted(found, key=lambda op: op["start_ns"])


def batch_copies(done):
    return copies(done, "host_to_device", BATCH * INPUTS * 4)


def first_layers(done):
    """The first forward kernel of each step."""
    return kernels(done, "linear_forward")[::LAYERS]


def kernel_counts(done):
    names = ("linear_forward", "softmax_cross_entropy", "mean_loss", "linear_backward_weights",
             "linear_backward_biases", "linear_backward_inputs", "sgd_update")
    return {name: len(kernels(done, name)) for name in names}


class Examples(unittest.TestCase):
    def test_help_lists_every_trouble(self):
        done = run("cuda_trainer", "--help")
        self.assertEqual((done.status, done.stderr), (0, ""))
        for trouble in ("loader", "sync", "tiny", "malloc", "checkpoint", "logger"):
            self.assertIn(f"\n      {trouble} ", done.stdout)

    def test_wrong_options_are_refused_with_a_reason(self):
        for options, reason in (
            (("--iterations", "0"), "--iterations needs a number of at least 1, not '0'"),
            (("--batch", "many"), "--batch needs a number of at least 1, not 'many'"),
            (("--trouble", "all"), "unknown trouble 'all'"),
            (("--workers",), "unknown option or missing value: '--workers'"),
            (("--graph", "--devices", "2"), "--graph trains on one device only"),
        ):
            done = run("cuda_trainer", *options)
            self.assertEqual((done.status, done.stdout), (2, ""))
            self.assertIn(reason, done.stderr)

    def test_more_devices_than_there_are_is_refused(self):
        done = run("cuda_trainer", "--devices", "2")
        self.assertEqual((done.status, done.stderr), (1, "--devices 2: this machine has 1\n"))

    def test_losses_are_printed_and_nothing_else(self):
        done = train("--log-every", "5")
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 5)
        for line, iteration in zip(lines, (5, 10, 15, 20)):
            self.assertRegex(line, rf"^iteration {iteration} loss \d+\.\d{{4}}$")
        self.assertEqual(lines[-1], "trained 20 iterations")
        self.assertEqual(done.stderr, "")

    def test_equal_runs_print_the_same(self):
        self.assertEqual(train().stdout, train().stdout)

    def test_a_step_runs_each_kernel_once_a_layer(self):
        self.assertEqual(kernel_counts(train()), {
            "linear_forward": 20 * LAYERS,
            "softmax_cross_entropy": 20,
            "mean_loss": 20,
            "linear_backward_weights": 20 * LAYERS,
            "linear_backward_biases": 20 * LAYERS,
            "linear_backward_inputs": 20 * (LAYERS - 1),
            "sgd_update": 20 * LAYERS,
        })

    def test_kernels_wait_for_their_batch(self):
        done = train()
        batches = batch_copies(done)
        self.assertEqual(len(batches), 20)
        for batch, first in zip(batches, first_layers(done)):
            self.assertLessEqual(batch["end_ns"], first["start_ns"])
            self.assertNotEqual(batch["stream"], first["stream"])
        # A buffer is filled anew only when the step before the last is through with it.
        for batch, last in zip(batches[2:], kernels(done, "linear_backward_weights")[LAYERS - 1::LAYERS]):
            self.assertGreaterEqual(batch["start_ns"], last["end_ns"])

    def test_batches_are_copied_while_the_model_works(self):
        done = train("--loader-ms", "0")
        ahead = [batch["queued_ns"] < last["end_ns"] for batch, last in
                 zip(batch_copies(done)[1:], kernels(done, "sgd_update")[LAYERS - 1::LAYERS])]
        self.assertIn(True, ahead)

    def test_sync_reads_the_loss_in_every_step(self):
        done = train("--trouble", "sync", "--log-every", "0")
        losses = copies(done, "device_to_host", 4)
        self.assertEqual(len(losses), 20)
        # Between the passes: the backward pass is not queued before the loss is there.
        for loss, first in zip(losses, kernels(done, "linear_backward_weights")[::LAYERS]):
            self.assertGreaterEqual(first["queued_ns"], loss["end_ns"])

    def test_tiny_launches_its_kernels(self):
        done = train("--trouble", "tiny", "--tiny-kernels", "50")
        self.assertEqual(len(kernels(done, "scale_elements")), 20 * 50)
        self.assertEqual(kernels(train(), "scale_elements"), [])

    def test_malloc_waits_for_the_device(self):
        done = train("--trouble", "malloc")
        waiting = {wait["function"] for wait in done.waits}
        self.assertTrue(waiting & {"cudaMalloc", "cudaFree"}, waiting)

    def test_checkpoint_copies_all_parameters(self):
        done = train("--trouble", "checkpoint", "--checkpoint-ms", "1")
        self.assertEqual(len(copies(done, "device_to_host", PARAMETERS * 4)), 2)
        self.assertEqual(done.stderr, "")

    def test_loader_and_logger_change_no_device_work(self):
        expected = kernel_counts(train())
        for trouble in ("loader", "logger"):
            self.assertEqual(kernel_counts(train("--trouble", trouble)), expected)

    def test_options_beside_a_trouble_tune_it(self):
        # On either side of it: the trouble is applied first.
        for options in (("--sync-every", "10", "--trouble", "sync"),
                        ("--trouble", "sync", "--sync-every", "10")):
            done = train(*options, "--log-every", "0")
            self.assertEqual(len(copies(done, "device_to_host", 4)), 2)

    def test_graph_launches_the_same_kernels(self):
        done = train("--graph")
        self.assertEqual(kernel_counts(done), kernel_counts(train()))
        launched = kernels(done, "linear_forward")
        self.assertTrue(all(kernel["graph"] != 0 for kernel in launched))
        self.assertEqual(len({kernel["correlation"] for kernel in launched}), 20)

    def test_two_devices_exchange_gradients_and_parameters(self):
        done = train("--devices", "2", devices=2)
        for device in (0, 1):
            forward = [k for k in kernels(done, "linear_forward") if k["device"] == device]
            self.assertEqual(len(forward), 20 * LAYERS)
        # One device updates, with what both have learnt, before the other goes on.
        self.assertEqual({kernel["device"] for kernel in kernels(done, "sgd_update")}, {0})
        exchanged = copies(done, "peer_to_peer", PARAMETERS * 4)
        self.assertEqual(len(exchanged), 2 * 20)
        added = kernels(done, "accumulate_gradients")
        forward = [k for k in kernels(done, "linear_forward") if k["device"] == 1][::LAYERS]
        for i in range(19):
            gradients, parameters = exchanged[2 * i], exchanged[2 * i + 1]
            self.assertLessEqual(gradients["end_ns"], added[i]["start_ns"])
            self.assertLessEqual(parameters["end_ns"], forward[i + 1]["start_ns"])

    def test_linked_trainer_trains_as_the_unlinked_one(self):
        linked = train(program="linked_trainer")
        self.assertEqual(linked.stdout, train().stdout)
        self.assertEqual(linked.stderr, "")

    def test_c_trainer_trains(self):
        done = train(program="c_trainer")
        self.assertEqual(len(kernels(done, "predict")), 20)
        self.assertEqual(len(kernels(done, "mean_squared_error_gradients")), 20)
        self.assertRegex(done.stdout, r"^iteration 10 loss \S+\niteration 20 loss \S+\n"
                                      r"trained 20 iterations\n$")
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main()
