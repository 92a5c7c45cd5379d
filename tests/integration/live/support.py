# SPDX-License-Identifier: Apache-2.0
"""Runs programs with and without gpudiag around them on the simulated GPU, and compares."""
import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile

LIB = pathlib.Path(os.environ["GPUDIAG_LIB"])
SIMGPU = pathlib.Path(os.environ["SIMGPU_LIB"])
PROGRAMS = pathlib.Path(os.environ["LIVE_PROGRAMS"])
INJECT = LIB / "libgpudiag_inject.so"
JOB = PROGRAMS / "live_job"


@dataclasses.dataclass
class Run:
    status: int  # negative: killed by that signal
    stdout: str
    stderr: str  # of the job
    ours: list  # lines of gpudiag on stderr


def run(command, *, preload=True, faults="", cwd=None, timeout=100, **variables):
    """One run to its end. `variables` go into its environment; None takes one out."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUDIAG_", "SIMGPU_"))}
    environment["LD_LIBRARY_PATH"] = str(SIMGPU)
    environment.pop("LD_PRELOAD", None)
    if preload:
        environment["LD_PRELOAD"] = str(INJECT)
    if faults:
        environment["SIMGPU_FAULTS"] = faults
    for name, value in variables.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = str(value)
    done = subprocess.run(
        [str(part) for part in command], env=environment, cwd=cwd, timeout=timeout, capture_output=True, text=True
    )
    lines = done.stderr.splitlines(keepends=True)
    return Run(
        done.returncode,
        done.stdout,
        "".join(line for line in lines if not line.startswith("gpudiag ")),
        [line.rstrip("\n") for line in lines if line.startswith("gpudiag ")],
    )


def job(*arguments, **options):
    return run([JOB, *arguments], **options)


class Folder:
    """A run's files."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self._folder.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def lines(self):
        """All JSON lines, in the order of the files' names. A line that is not JSON is an error."""
        parsed = []
        for file in sorted(self.path.glob("*.jsonl")):
            for line in file.read_text().splitlines():
                parsed.append(json.loads(line))
        return parsed

    def iterations(self):
        return [line for line in self.lines() if line["schema"] == "gpudiag.iteration/1"]

    def notes(self, code):
        return [line for line in self.lines() if line.get("event") == "note" and line["code"] == code]


def same_identity(iteration):
    """wall = compute + communication + copy + idle, idle = the sum of its causes."""
    idle = sum(iteration["idle"].values())
    parts = iteration["compute_ns"] + iteration["communication_ns"] + iteration["copy_ns"] + iteration["idle_ns"]
    return iteration["wall_ns"] == parts and iteration["idle_ns"] == idle
