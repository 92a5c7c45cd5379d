# SPDX-License-Identifier: Apache-2.0
"""Training beside PyTorch's own profiler: `profiled.py MODE`. The last line of stdout is JSON: for each
trace that the profiler made, how many kernels each of its steps has, and where in the loop it was open."""
import json
import os
import sys
import tempfile
import time

import torch
from torch import nn
from torch.autograd import profiler as autograd_profiler
from torch.profiler import ProfilerActivity, profile, schedule

STEPS = 40
BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.ones(16, 64, device="cuda")
traces = []


def step():
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
    torch.cuda.synchronize()
    time.sleep(0.01)


def count(trace_of):
    """Kernels of a trace and the ranges PyTorch put around its steps."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        trace_of.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    linked = sum(1 for e in kernels if e["args"].get("correlation") is not None)
    steps = [e["name"] for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")]
    negative = sum(1 for e in kernels if e["dur"] < 0)
    traces.append({"kernels": len(kernels), "linked": linked, "steps": len(steps), "negative": negative,
                   "kinds": sorted({e["cat"] for e in events if e.get("cat") in ("gpu_memcpy", "kernel", "cuda_sync",
                                                                                 "cuda_driver", "cuda_runtime")})})


def scheduled():
    """Wait 4, warm-up 2, active 3, twice: open in steps 4 to 8 and 13 to 17."""
    with profile(activities=BOTH, schedule=schedule(wait=4, warmup=2, active=3, repeat=2), on_trace_ready=count) as p:
        for _ in range(STEPS):
            step()
            p.step()


def after_stop():
    """gpudiag.torch.stop() where the session is injected, which then runs on."""
    if "gpudiag" in sys.modules:
        import gpudiag.torch
        gpudiag.torch.stop()
    for _ in range(2):
        for _ in range(10):
            step()
        with profile(activities=BOTH) as p:
            for _ in range(5):
                step()
        count(p)


def plain(activities, begin, end):
    made = None
    for index in range(STEPS):
        if index == begin:
            made = profile(activities=activities)
            made.start()
        if index == end:
            made.stop()
            count(made)
        step()


def before():
    """Open before anything of gpudiag's is imported, and in its warm-up at that."""
    warm = profile(activities=BOTH, schedule=schedule(wait=0, warmup=6, active=4, repeat=1), on_trace_ready=count)
    with warm:
        for index in range(10):
            if index == 3 and "gpudiag" in os.environ.get("PYTHONPATH", ""):
                import gpudiag.torch  # noqa: F401
            step()
            warm.step()
    for _ in range(STEPS - 10):
        step()


def cpu_only():
    plain([ProfilerActivity.CPU], 5, 15)


def cpu_first():
    made = profile(activities=[ProfilerActivity.CPU])
    with made:
        for _ in range(5):
            step()
    count(made)
    plain(BOTH, 10, 20)


def autograd(use_kineto):
    """Without Kineto it times operators by CUDA events and needs no CUPTI."""
    for _ in range(10):
        step()
    with autograd_profiler.profile(use_device="cuda", use_kineto=use_kineto) as made:
        for _ in range(5):
            step()
    count(made)
    for _ in range(STEPS - 15):
        step()


def failing():
    """One that cannot begin, twice: nobody stands aside afterwards."""
    for index in range(STEPS):
        if index in (10, 20):
            outer = profile(activities=BOTH)
            outer.start()
            try:
                with profile(activities=BOTH):
                    pass
            except RuntimeError as error:
                traces.append(type(error).__name__)
            outer.stop()
        step()


def many():
    """A session every other step."""
    for index in range(STEPS):
        if index % 4 == 2 and index < 30:
            with profile(activities=BOTH) as made:
                step()
            count(made)
        else:
            step()


modes = {"scheduled": scheduled, "plain": lambda: plain(BOTH, 10, 20), "before": before, "after_stop": after_stop,
         "cpu_only": cpu_only, "cpu_first": cpu_first, "autograd": lambda: autograd(True),
         "events": lambda: autograd(False), "failing": failing, "many": many}
modes[sys.argv[1]]()
print(json.dumps(traces))
