#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How other tools divide the time of the truth benchmark's jobs.

Runs with HTA's environment (.deps/hta-venv/bin/python). `truth_benchmark --kineto DIR` has written each job
with and without its trouble as a trace of torch.profiler and an index. HTA's idle time breakdown reads both;
the categories of torch-tb-profiler's overview (Kernel, Memcpy, Memset, Runtime, DataLoader, CPU Exec, Other:
each instant of a step belongs to the first that is under way) are computed here from that description, since
the plugin itself has no command line. Printed is by how much each category changes, in % of the wall time.
"""
import collections
import json
import logging
import sys
from pathlib import Path

logging.disable(logging.CRITICAL)
RUNTIME, LOADER, CPU = "Runtime", "DataLoader", "CPU Exec"
PRIORITY = ["Kernel", "Memcpy", RUNTIME, LOADER, CPU]
HTA_NAMES = ["host_wait", "kernel_wait", "other"]


def category(event):
    kind = event.get("cat")
    if kind == "kernel":
        return "Kernel"
    if kind == "gpu_memcpy":
        return "Memcpy"
    if kind == "cuda_runtime":
        return RUNTIME
    if kind == "user_annotation" and event["name"].startswith("enumerate(DataLoader)"):
        return LOADER
    return CPU if kind == "cpu_op" else None


def tensorboard(path):
    """Microseconds by category, from the first to the last step."""
    events = json.loads(path.read_text())["traceEvents"]
    steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
    begin = min(e["ts"] for e in steps)
    end = max(e["ts"] + e["dur"] for e in steps)
    edges = []
    for event in events:
        name = category(event)
        if name is None:
            continue
        start, stop = max(begin, event["ts"]), min(end, event["ts"] + event["dur"])
        if start < stop:
            edges += [(start, 1, name), (stop, -1, name)]
    edges.sort(key=lambda edge: edge[0])
    under_way = collections.Counter()
    times = collections.Counter()
    at = begin
    for time, change, name in edges + [(end, 0, "")]:
        times[next((p for p in PRIORITY if under_way[p] > 0), "Other")] += time - at
        under_way[name] += change
        at = time
    return times


def hta(path):
    from hta.trace_analysis import TraceAnalysis
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
    table, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    times = collections.Counter()
    for _, row in table.iterrows():
        times[row["idle_category"]] += float(row["idle_time"])
    return times


def changes(of, row, names):
    with_trouble, without = of(row["with"]), of(row["without"])
    whole = float(row["wall_us"]) * float(row["iterations"])
    return " ".join(f"{100 * (with_trouble[n] - without[n]) / whole:+.1f}" for n in names)


def main():
    folder = Path(sys.argv[1])
    lines = (folder / "index.tsv").read_text().splitlines()
    head = lines[0].split("\t")
    print("| job | cause (sub-cause) | true cost | gpudiag charges | HTA: " + ", ".join(HTA_NAMES) +
          " | overview: Runtime, DataLoader, CPU Exec, Other |")
    print("|---|---|---:|---:|---|---|")
    for line in lines[1:]:
        row = dict(zip(head, line.split("\t")))
        row["with"], row["without"] = folder / row["with"], folder / row["without"]
        try:
            by_hta = changes(hta, row, HTA_NAMES)
        except Exception as error:  # it reads many of these traces and not all
            by_hta = f"cannot read it ({type(error).__name__})"
        by_overview = changes(tensorboard, row, [RUNTIME, LOADER, CPU, "Other"])
        print(f"| {row['job']} | {row['cause']} | {row['true']} | {row['charge']} | {by_hta} | {by_overview} |", flush=True)


main()
