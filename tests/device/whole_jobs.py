#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trainer under `gpudiag run`: the same verdict on a GPU as on the simulated one, and what it costs.

usage: whole_jobs.py [--build build] [--simulate] [--overhead ROUNDS] [--json FILE] [--skip-status N]

Each trouble of the trainer must be the verdict. Small kernels that are dispatched slowly are host work and
launch overhead, of which neither alone gains much: there either name, or both together, will do as long as
launch overhead is among the findings. With --simulate the cause need only be among the findings or be
charged idle time: host time is real there, and on a busy machine the host itself becomes the worst of troubles. With --overhead the trainer runs ROUNDS times bare
and ROUNDS times with gpudiag, alternating; printed is the median of the ratios, and no threshold is set.
The exit status is 1 where a verdict is wrong; N, by default 0, where there is no GPU.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

# Options and the verdicts that are right. A kernel of 6 ms in each step, and a loader that takes no time,
# make the device the bottleneck of a job without its trouble, on any GPU: what it starves from is the trouble.
STEP = ("--step-kernel-us", "6000")
READY = ("--loader-ms", "0")
TROUBLES = {
    "loader": (STEP, ("data_loading",)),
    "sync": (STEP + READY, ("sync",)),
    "tiny": (READY, ("launch_overhead", "host", "host_together")),
    "malloc": (STEP + READY, ("allocation",)),
    "checkpoint": (STEP + READY, ("checkpoint",)),
    "logger": (STEP + READY, ("host",)),
}
# The simulated GPU does not count nanoseconds in kernels; this tells it what the kernel of each step asks for.
COSTS = "kernel occupy_device arg0=u64 noise=0"
ITERATIONS = 200


def environment():
    """Ours, without what would configure the job or the simulated GPU behind our back."""
    foreign = ("GPUDIAG_", "SIMGPU_", "CUDA_INJECTION", "NVTX_INJECTION", "LD_PRELOAD")
    ours = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    return {**ours, "SIMGPU_COSTS": COSTS}


def run(command):
    done = subprocess.run([str(part) for part in command], env=environment(), capture_output=True, text=True,
                          timeout=200, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr[-2000:]}")
    return done


def diagnose(build, simulate, name, options):
    """The report of the trainer's run with this trouble under gpudiag."""
    with tempfile.TemporaryDirectory() as folder:
        run([build / "bin" / "gpudiag", "run", *(["--simulate"] if simulate else []), "--log", "off", "--dir",
             folder, "--", build / "bin" / "cuda_trainer", "--iterations", ITERATIONS,
             "--trouble", name, *options])
        return json.loads((pathlib.Path(folder) / "report.json").read_text(encoding="utf-8"))


def identity_holds(report):
    """Every iteration's time is accounted for, to the nanosecond, and there are iterations."""
    iterations = [i for rank in report["ranks"] for device in rank["devices"] for i in device["iterations"]]
    return bool(iterations) and all(
        i["wall_ns"] == i["compute_ns"] + i["communication_ns"] + i["copy_ns"] + i["idle_ns"]
        and i["idle_ns"] == sum(i["idle"].values()) for i in iterations)


def charged(report, cause):
    """The share of all time in which the first device was idle for this cause."""
    total = report["ranks"][0]["devices"][0]["all"]
    return total["idle"][f"{cause}_ns"] / total["wall_ns"]


def check_trouble(build, simulate, name):
    options, right = TROUBLES[name]
    try:
        report = diagnose(build, simulate, name, options)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        return {"name": f"WholeJobs.{name}", "row": 45, "status": "failed", "measured": str(error)}
    share = report["findings"][0]["share"] if report["findings"] else 0
    found = {finding["cause"] for finding in report["findings"]}
    if simulate:
        named = right[0] in found or charged(report, right[0]) > 0.005
    else:
        named = report["verdict"] in right and right[0] in found
    good = named and identity_holds(report)
    seen = f"{report['verdict']} {share:.1%}" + ("" if identity_holds(report) else ", the sums do not add up")
    return {"name": f"WholeJobs.{name}", "row": 45, "status": "passed" if good else "failed", "measured": seen}


def milliseconds(done):
    return float(re.search(r"([0-9.]+) ms an iteration", done.stderr).group(1))


def overhead(build, simulate, rounds):
    """The ratio of the time of an iteration with gpudiag to that without, median of the pairs."""
    trainer = [build / "bin" / "cuda_trainer", "--iterations", 3 * ITERATIONS, "--log-every", 0, "--timing"]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        ours = [build / "bin" / "gpudiag", "run", *(["--simulate"] if simulate else []), "--log", "off", "--dir",
                folder, "--", *trainer]
        bare = (["env", f"LD_LIBRARY_PATH={build / 'lib' / 'simgpu'}"] if simulate else []) + trainer
        for number in range(rounds):
            pair = [(bare, "bare"), (ours, "ours")]
            times = {name: milliseconds(run(command)) for command, name in (pair if number % 2 else pair[::-1])}
            ratios.append(times["ours"] / times["bare"] - 1)
    low, high = min(ratios), max(ratios)
    return {"name": "WholeJobs.overhead", "row": 46, "status": "measured",
            "measured": f"median {statistics.median(ratios):+.2%} of {rounds} pairs, {low:+.2%} to {high:+.2%}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--overhead", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--skip-status", type=int, default=0)
    arguments = parser.parse_args()
    if not arguments.simulate and not os.path.exists("/dev/nvidiactl"):
        print("whole_jobs: not run: no GPU here, there is no /dev/nvidiactl")
        return arguments.skip_status
    build = arguments.build.resolve()
    results = []
    for name in TROUBLES:
        results.append(check_trouble(build, arguments.simulate, name))
        print("{status:8} {name:24} {measured}".format(**results[-1]), flush=True)
    if arguments.overhead:
        results.append(overhead(build, arguments.simulate, arguments.overhead))
        print("{status:8} {name:24} {measured}".format(**results[-1]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if any(result["status"] == "failed" for result in results) else 0


sys.exit(main())
