# SPDX-License-Identifier: Apache-2.0
"""What dlrm_test.cpp expects of the eight DLRM traces, computed from the files alone.

    dlrm_by_hand.py FOLDER

Knows nothing of gpudiag: collectives are the NCCL kernels in the order of each rank's stream, exposed is
what no other kernel covers, waiting lasts from a rank's own start to the last rank's start. All ranks ran
on one machine, so that their clocks are one. Times in microseconds.
"""
import gzip
import json
import sys


def kernels_of(path):
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    kernels = [(e["ts"], e["ts"] + e["dur"], e["name"]) for e in events if e.get("cat") == "kernel"]
    return sorted(kernels)


def exposed_parts(start, end, busy):
    """[start, end) without the intervals in `busy`."""
    parts = [(start, end)]
    for b, e in busy:
        parts = [piece for s, t in parts for piece in ((s, min(t, b)), (max(s, e), t)) if piece[0] < piece[1]]
    return parts


def main(folder):
    ranks = [kernels_of(f"{folder}/rank{r}.json.gz") for r in range(8)]
    collectives = [[k for k in kernels if "nccl" in k[2]] for kernels in ranks]
    last = [max(rank[c][0] for rank in collectives) for c in range(len(collectives[0]))]
    print("rank  exposed  waits (us)")
    for rank, kernels in enumerate(ranks):
        busy = [(s, e) for s, e, name in kernels if "nccl" not in name]
        exposed = wait = 0
        for c, (start, end, _) in enumerate(collectives[rank]):
            hidden = end - start - sum(t - s for s, t in exposed_parts(start, end, busy))
            exposed += end - start - hidden
            # The exposed part is taken to be the end of the operation, as docs/ranks.md says.
            wait += max(0, min(end, last[c]) - max(start, start + hidden))
        print(f"{rank:4}  {exposed:7}  {wait:7}")


if __name__ == "__main__":
    main(sys.argv[1])
