# SPDX-License-Identifier: Apache-2.0
"""Makes traces of torch.profiler, one a rank, of a job in the StragglerAnalysis format (parquet).

    parquet_job.py JOB.parquet FOLDER

Needs pyarrow. Steps of the table have times of their own and are put one behind the other. Sends and
receives of a pipeline, the reduce-scatter and all-gather of a data parallel group and the all-reduce of
embeddings between first and last stage become NCCL kernels with the metadata that torch writes; all else is
compute, but for garbage collection, in which the GPU idles.
"""
import json
import pathlib
import sys
from collections import defaultdict

import pyarrow.parquet

GAP_US = 1_000
KINDS = {
    "forward-send": ("send", "SendRecv", +1), "forward-recv": ("recv", "SendRecv", -1),
    "backward-send": ("send", "SendRecv", -1), "backward-recv": ("recv", "SendRecv", +1),
    "grads-reduce-scatter": ("reduce_scatter", "ReduceScatter", 0),
    "params-all-gather": ("all_gather", "AllGather", 0),
    "embedding-grads-all-reduce": ("all_reduce", "AllReduce", None),
}
STREAMS = {name: 20 + number for number, name in enumerate(KINDS)}


def read(path):
    """Rows by step and rank, and the rank at each place (replica, stage)."""
    steps = defaultdict(lambda: defaultdict(list))
    places = {}
    for row in pyarrow.parquet.read_table(path).to_pylist():
        steps[row["step"]][row["rank"]].append(row)
        places[row["dp_rank"], row["stage"]] = row["rank"]
    return steps, places


def metadata(row, places, ranks_of_stage, last_stage, order):
    kind, _, direction = KINDS[row["optype"]]
    rank, replica, stage = row["rank"], row["dp_rank"], row["stage"]
    if direction == 0:
        group, ranks = f"dp{stage}", ranks_of_stage[stage]
    elif direction is None:
        group, ranks = f"emb{replica}", [places[replica, 0], places[replica, last_stage]]
    else:
        peer = places[replica, stage + direction]
        sender, receiver = (rank, peer) if kind == "send" else (peer, rank)
        group, ranks = f"{row['optype'].split('-')[0]}{replica}", sorted((rank, peer))
        return {"Collective name": kind, "Process Group Name": group, "Process Group Ranks": str(ranks),
                "Group size": 2, "Src Rank": sender, "Dst Rank": receiver, "Seq": order}
    return {"Collective name": kind, "Process Group Name": group, "Process Group Ranks": str(ranks[:8]),
            "Group size": len(ranks), "Seq": order}


def write(path, folder):
    steps, places = read(path)
    stages = sorted({stage for _, stage in places})
    ranks_of_stage = {s: sorted(r for (_, stage), r in places.items() if stage == s) for s in stages}
    events = defaultdict(list)
    counts = defaultdict(int)
    begin = 0
    for number, step in enumerate(sorted(steps)):
        length = 0
        for rank, rows in steps[step].items():
            correlation = number * 10_000
            for row in sorted(rows, key=lambda r: r["start_ts"]):
                start, duration = row["start_ts"] * 1e6, row["duration"] * 1e6
                length = max(length, start + duration)
                if row["optype"] == "gc":
                    continue
                name, stream, args = row["optype"], 7, {}
                if name in KINDS:
                    order = counts[rank, name]
                    counts[rank, name] += 1
                    args = metadata(row, places, ranks_of_stage, stages[-1], order)
                    name, stream = f"ncclDevKernel_{KINDS[name][1]}(ncclDevKernelArgsStorage<4096ul>)", STREAMS[name]
                correlation += 1
                ts = round(begin + start, 3)
                events[rank].append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": ts,
                                     "dur": round(duration, 3),
                                     "args": {"device": 0, "context": 1, "stream": stream, "correlation": correlation, **args}})
                events[rank].append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": rank + 1, "tid": 1,
                                     "ts": round(ts - 5, 3), "dur": 2, "args": {"correlation": correlation}})
        for rank in steps[step]:
            events[rank].append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": rank + 1,
                                 "tid": 1, "ts": begin - 20, "dur": length + GAP_US - 1})
        begin += length + GAP_US
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for rank, listed in events.items():
        document = {"distributedInfo": {"rank": rank, "world_size": len(events), "backend": "nccl"}, "traceEvents": listed}
        (folder / f"rank{rank}.json").write_text(json.dumps(document), encoding="utf-8")
    return len(steps), begin


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
