# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of examples/pytorch with and without gpudiag, and sums what it said of them."""
import concurrent.futures
import dataclasses
import os
import pathlib
import tempfile

import support

FOLDER = support.HERE.parents[1] / "examples" / "pytorch"
SIMGPU = support.COMMAND.parents[1] / "lib" / "simgpu"

# How many optimizer steps each makes; those of accumulate.py are four times as long.
STEPS = {"single": 30, "ddp": 24, "accumulate": 14, "cuda_graphs": 30, "lightning_trainer": 30, "hf_trainer": 30}
# Workers and kernels are started, memory is allocated, modules are imported.
WARM_UP = 5

# Calls that take their time on hardware, and none on the simulated GPU unless told.
SLOW_MEMORY = "api cudaMalloc host_ns=3000000;api cudaFree host_ns=3000000"
SLOW_LAUNCHES = "api cudaLaunchKernel host_ns=60000"


# What the trainers of others need beyond PyTorch (tools/simgpu/torch/make_extras).
EXTRAS = os.environ.get("GPUDIAG_TORCH_EXTRAS", "")
NEEDS = {"lightning_trainer": "lightning", "hf_trainer": "transformers"}


def there(example):
    """Whether what it needs is there."""
    return example not in NEEDS or os.path.isdir(os.path.join(EXTRAS, NEEDS[example]))


def chosen(names):
    """Those of `names` that GPUDIAG_EXAMPLES asks for ("all": all), single and ddp unless it is set. Of one name
    there is no choice."""
    wanted = os.environ.get("GPUDIAG_EXAMPLES", "single,ddp")
    return [name for name in names if there(name) and (len(names) == 1 or wanted == "all" or name in wanted.split(","))]


def run_example(example, *switches, how="run", steps=None, script=(), settings=(), **variables):
    """Runs it to its end; `script` stands before the example's path."""
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2") if example == "ddp" else ()
    environment = {"OMP_NUM_THREADS": "1", "SIMGPU_DEVICES": "2" if example == "ddp" else "1", "SIMGPU_NOISE": "0",
                   "PYTHONDONTWRITEBYTECODE": "1", **variables}
    if example in NEEDS:
        environment["PYTHONPATH"] = EXTRAS
    if how == "import":
        environment["LD_LIBRARY_PATH"] = SIMGPU
    with tempfile.TemporaryDirectory() as folder:
        return support.python(*launcher, *script, FOLDER / f"{example}.py", "--folder", folder, "--steps",
                              steps or STEPS[example], *switches, how=how, timeout=400, settings=settings,
                              **environment)


def both(example, *switches, **options):
    """The job without us and with us, at the same time."""
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        bare = other.submit(run_example, example, *switches, how="bare", **options)
        run = run_example(example, *switches, **options)
        return bare.result(), run


@dataclasses.dataclass
class Ledger:
    """Sums over the iterations of a rank after warm-up."""

    iterations: int
    wall: int
    parts: dict       # compute, communication, copy, idle
    idle: dict        # by cause
    cost: dict        # by cause, of the replay
    charged: dict     # (cause, sub-cause, what) of the evidence: ns

    def leading(self):
        """The cause with most of the idle time."""
        return max(self.idle, key=self.idle.get)

    def share(self, cause):
        return self.idle[cause] / self.wall

    def sub_cause(self, cause):
        """Of the evidence that most of the cause's time is charged to."""
        of_cause = {key: ns for key, ns in self.charged.items() if key[0] == cause}
        return max(of_cause, key=of_cause.get)[1]

    def __str__(self):
        shares = {name: f"{100 * ns / self.wall:.1f} %" for name, ns in {**self.parts, **self.idle}.items() if ns}
        costs = {name: f"{100 * ns / self.wall:.1f} %" for name, ns in self.cost.items() if ns}
        return f"{self.iterations} iterations, {self.wall / self.iterations / 1e6:.1f} ms: {shares}, costs {costs}"


def add(into, values):
    for name, ns in values.items():
        name = name.removesuffix("_ns")
        into[name] = into.get(name, 0) + ns


def ledger(run, rank=0, warm_up=WARM_UP):
    """Of the complete training iterations that something marked."""
    marked = [one for one in run.iterations
              if one["rank"] == rank and one["phase"] == "train" and one["opened_by"] in ("optimizer", "step")]
    total = Ledger(0, 0, {}, {}, {}, {})
    for one in marked:
        if one["index"] < warm_up or not one["valid"] or one["partial"] or one["empty"]:
            continue
        total.iterations += 1
        total.wall += one["wall_ns"]
        add(total.parts, {part: one[f"{part}_ns"] for part in ("compute", "communication", "copy", "idle")})
        add(total.idle, one["idle"])
        add(total.cost, one["replay_cost"])
        for evidence in one["evidence"]:
            key = (evidence["cause"], evidence["sub_cause"], evidence["what"])
            total.charged[key] = total.charged.get(key, 0) + evidence["charged_ns"]
    return total
