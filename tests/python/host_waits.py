# SPDX-License-Identifier: Apache-2.0
"""Two ranks on gloo: rank 0 waits for rank 1 in one way, 40 ms in each step, and its GPU idles meanwhile.

    python -m torch.distributed.run --standalone --nproc-per-node 2 host_waits.py barrier|all_reduce|store
"""
import sys
import time

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.Linear(512, 512, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.zeros(64, 512, device="cuda")
    number = torch.zeros(16)
    store = dist.distributed_c10d._get_default_store()
    for step in range(16):
        if rank == 1:
            time.sleep(0.04)
        if sys.argv[1] == "barrier":
            dist.barrier()
        elif sys.argv[1] == "all_reduce":
            dist.all_reduce(number)
        elif rank == 1:
            store.set(f"step {step}", "done")
        else:
            store.get(f"step {step}")
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
        torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()
    print("trained")


if __name__ == "__main__":
    main()
