# SPDX-License-Identifier: Apache-2.0
"""Runs training scripts on the simulated GPU, with gpudiag around or in them and without."""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

COMMAND = pathlib.Path(os.environ["GPUDIAG_COMMAND"])
PACKAGE = pathlib.Path(os.environ["GPUDIAG_PYTHON_PACKAGE"])  # the folder that holds `gpudiag`
HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs.py"


@dataclasses.dataclass
class Run:
    status: int          # negative: killed by that signal
    stdout: str
    stderr: str          # of the job
    ours: list           # lines of gpudiag on stderr
    iterations: list     # gpudiag.iteration/1
    notes: list          # gpudiag.session/1, events "note"
    files: list
    report: dict         # of `gpudiag run`

    def found(self):
        """The JSON that the program printed last."""
        return json.loads(self.stdout.strip().splitlines()[-1])

    def of(self, phase):
        return [one for one in self.iterations if one["phase"] == phase]

    def later(self):
        """Of training without the first iteration, in which PyTorch imports half of itself."""
        return [one for one in self.of("train") if one["index"] >= 1 and one["opened_by"] == "optimizer"]

    def numbers(self):
        """Of the iterations that an optimizer ended."""
        return [one["index"] for one in self.of("train") if one["opened_by"] == "optimizer"]


def clean_environment(**variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GPUDIAG_", "SIMGPU_", "CUDA_INJ", "NVTX_INJ"))}
    environment.pop("PYTHONPATH", None)
    environment.pop("LD_PRELOAD", None)
    for name, value in variables.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = str(value)
    return environment


def python(*arguments, how="run", timeout=240, settings=(), interrupt_at=None, **variables):
    """`python ARGUMENTS` to its end. `how`: "run" (under gpudiag run), "import" (the package is
    importable), "bare" (nothing of ours). `interrupt_at`: send SIGINT when this stands in stdout."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *map(str, arguments)]
        if how == "run":
            command = [str(COMMAND), "run", "--simulate", "--dir", folder, *settings, "--", *command]
        elif how == "import":
            before = variables.get("PYTHONPATH")
            variables["PYTHONPATH"] = f"{PACKAGE}{os.pathsep + before if before else ''}"
            variables.setdefault("GPUDIAG_DIR", folder)
        environment = clean_environment(**variables)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        seen = ""
        if interrupt_at is not None:
            while interrupt_at not in seen:
                line = process.stdout.readline()
                if not line:
                    break
                seen += line
            process.send_signal(signal.SIGINT)
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate()
            raise AssertionError(f"{command} hung\n{out}\n{errors}")
        return _read(process.returncode, seen + out, errors, pathlib.Path(folder))


def _read(status, out, errors, folder):
    lines = errors.splitlines(keepends=True)
    ours = [line.rstrip("\n") for line in lines if line.startswith("gpudiag ")]
    run = Run(status, out, "".join(line for line in lines if not line.startswith("gpudiag ")), ours, [], [], [], {})
    for file in sorted(folder.glob("*.jsonl")):
        run.files.append(file.name)
        for line in file.read_text().splitlines():
            parsed = json.loads(line)
            if parsed["schema"] == "gpudiag.iteration/1":
                run.iterations.append(parsed)
            elif parsed.get("event") == "note":
                run.notes.append(parsed)
    report = folder / "report.json"
    if report.exists():
        run.report = json.loads(report.read_text())
    return run


def program(name, *arguments, **options):
    return python(PROGRAMS, name, *arguments, **options)


def shares(iterations):
    """Idle time by cause over these, and what the evidence calls each, most first."""
    idle, sub_causes = {}, {}
    for one in iterations:
        for cause, time_ns in one["idle"].items():
            cause = cause.removesuffix("_ns")
            idle[cause] = idle.get(cause, 0) + time_ns
        for evidence in one["evidence"]:
            key = (evidence["cause"], evidence["sub_cause"], evidence["what"])
            sub_causes[key] = sub_causes.get(key, 0) + evidence["charged_ns"]
    return idle, sub_causes


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
