# SPDX-License-Identifier: Apache-2.0
"""Runs the example trainer with a trouble under `gpudiag run` on the simulated GPU, and keeps both what really
happened and what gpudiag says of it.

Flow: [trainer] → truth file → replay, windows → judge.
"""
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from live_recording import read_operations
from live_truth import Truth, read_truth

# A kernel of 6 ms in each step and a loader that takes no time make the device the bottleneck of a job without
# its trouble: what it starves from is the trouble. Batches are small, since making them keeps a processor busy.
STEP = ("--step-kernel-us", "6000", "--batch", "4096")
READY = ("--loader-ms", "0")
BUSY = STEP + READY
TWO = ("--devices", "2")
# The simulated GPU does not count nanoseconds in kernels; this tells it what the kernel of each step asks for.
COSTS = "kernel occupy_device arg0=u64 noise=0"
ITERATIONS = 120


@dataclasses.dataclass(frozen=True)
class Trouble:
    options: tuple
    cause: str  # of the idle time that it makes; empty: none, or several
    iterations: int = ITERATIONS

    @property
    def devices(self):
        return 2 if "--devices" in self.options else 1


TROUBLES = {
    "healthy": Trouble(BUSY, ""),
    "loader": Trouble(("--trouble", "loader") + STEP, "data_loading"),
    "prefetch": Trouble(STEP + ("--workers", "1", "--prefetch", "1", "--loader-ms", "9"), "data_loading"),
    "sync": Trouble(("--trouble", "sync") + BUSY, "sync"),
    "tiny": Trouble(("--trouble", "tiny") + READY, "launch_overhead", 60),
    "malloc": Trouble(("--trouble", "malloc") + BUSY, "allocation"),
    "checkpoint": Trouble(("--trouble", "checkpoint") + BUSY, "checkpoint"),
    "logger": Trouble(("--trouble", "logger") + BUSY, "host"),
    "graph": Trouble(("--graph",) + BUSY, ""),
    "graph_sync": Trouble(("--graph", "--trouble", "sync") + BUSY, "sync"),
    "graph_loader": Trouble(("--graph", "--trouble", "loader") + STEP, "data_loading"),
    "devices": Trouble(TWO + BUSY, ""),
    "devices_loader": Trouble(TWO + ("--trouble", "loader") + STEP, "data_loading"),
    "devices_sync": Trouble(TWO + ("--trouble", "sync") + BUSY, "sync"),
    "loader_and_sync": Trouble(("--trouble", "loader", "--sync-every", "1", "--host-us", "700") + STEP, ""),
    "malloc_and_logger": Trouble(("--trouble", "malloc", "--logger-ms", "9") + BUSY, ""),
    "sync_and_tiny": Trouble(("--trouble", "tiny", "--sync-every", "1") + READY, "", 60),
}


@dataclasses.dataclass
class Run:
    truth: Truth
    recorded: list  # operations as gpudiag recorded them
    ledgers: list  # gpudiag.iteration/1, as the job wrote them
    report: dict  # gpudiag.report/1

    def ledgers_of(self, device):
        return [ledger for ledger in self.ledgers if ledger["device"] == device]


def environment(build, truth):
    """Ours, without what would configure the job or the simulated GPU behind our back."""
    foreign = ("GPUDIAG_", "SIMGPU_", "CUDA_INJECTION", "NVTX_INJECTION", "LD_PRELOAD")
    ours = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    simgpu = build / "lib" / "simgpu"
    return {
        **ours,
        "SIMGPU_COSTS": COSTS,
        "SIMGPU_DEVICES": "2",
        "SIMGPU_TRUTH": str(truth),
        # Ranges reach gpudiag by way of the truth.
        "NVTX_INJECTION64_PATH": str(simgpu / "libsimgpu_nvtx.so"),
        "SIMGPU_NVTX_NEXT": str(build / "lib" / "libgpudiag_inject.so"),
    }


def go_first():
    """Where it is allowed: what loses the processor while it takes a batch looks like one that waits for it."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    except OSError:
        pass


def read_run(folder):
    folder = pathlib.Path(folder)
    lines = [json.loads(text) for file in folder.glob("*.jsonl") for text in file.read_text().splitlines()]
    return Run(
        read_truth(folder / "truth"),
        read_operations(next(folder.glob("*.gpudiag"))),
        [line for line in lines if line["schema"] == "gpudiag.iteration/1"],
        json.loads((folder / "report.json").read_text()),
    )


def run_trainer(build, trouble, keep=None):
    """`build` is the build's folder; with `keep` the files of the run stay in that folder, which is emptied first."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(keep or temporary)
        if keep:
            shutil.rmtree(keep, ignore_errors=True)
            folder.mkdir(parents=True)
        command = [build / "bin" / "gpudiag", "run", "--simulate", "--record", "--log", "off", "--dir", folder, "--",
                   build / "bin" / "cuda_trainer", "--iterations", trouble.iterations, *trouble.options]
        done = subprocess.run([str(part) for part in command], env=environment(build, folder / "truth"),
                              capture_output=True, text=True, timeout=300, check=False, preexec_fn=go_first)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr[-2000:]}")
        return read_run(folder)
