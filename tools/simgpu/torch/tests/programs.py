# SPDX-License-Identifier: Apache-2.0
"""What the tests run: `programs.py NAME` runs one and prints what it found as JSON.

Values on the simulated device are zero or stale, so no program branches on them.
"""
import ctypes
import json
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()


def train_step(model, optimizer, inputs):
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()


def devices():
    return {"available": torch.cuda.is_available(), "count": torch.cuda.device_count(),
            "name": torch.cuda.get_device_name(0), "nccl": list(torch.cuda.nccl.version()),
            "cudnn": torch.backends.cudnn.version()}


def linear():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(32, 64, device="cuda")
    for _ in range(3):
        train_step(model, optimizer, inputs)
    torch.cuda.synchronize()
    return {}


def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for backend, dtype in ((SDPBackend.FLASH_ATTENTION, torch.bfloat16),
                           (SDPBackend.EFFICIENT_ATTENTION, torch.float32),
                           (SDPBackend.MATH, torch.float32)):
        with sdpa_kernel(backend):
            q = torch.randn(2, 4, 128, 64, device="cuda", dtype=dtype, requires_grad=True)
            F.scaled_dot_product_attention(q, q, q).sum().backward()
    torch.cuda.synchronize()
    return {}


def default_attention():
    q = torch.randn(2, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    F.scaled_dot_product_attention(q, q, q).sum().backward()
    torch.cuda.synchronize()
    return {"capability": torch.cuda.get_device_capability()}


def convolution():
    torch.backends.cudnn.enabled = False
    nn.Conv2d(3, 8, 3).cuda()(torch.randn(2, 3, 32, 32, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    return {}


def encoder_in_autocast():
    torch.backends.cuda.enable_cudnn_sdp(False)
    layer = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True).cuda()
    optimizer = torch.optim.AdamW(layer.parameters(), fused=True)
    inputs = torch.randn(4, 128, 256, device="cuda")
    for _ in range(2):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = layer(inputs).float().pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return {"loss": loss.item()}


def adamw():
    for options in ({"fused": True}, {"foreach": True}):
        model = mlp()
        train_step(model, torch.optim.AdamW(model.parameters(), **options),
                   torch.randn(8, 64, device="cuda"))
    torch.cuda.synchronize()
    return {}


def copies():
    there = torch.arange(1000, dtype=torch.float32).cuda()
    return {"back": there.cpu().tolist() == list(range(1000)), "item": there[7].item()}


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((16,), float(index))


def loader():
    batches = torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=True)
    found = []
    for batch in batches:
        found.append([batch.is_pinned(), batch.cuda(non_blocking=True).cpu()[:, 0].tolist()])
    return {"batches": found}


def graphs():
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True, capturable=True)
    inputs = torch.randn(8, 64, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train_step(model, optimizer, inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train_step(model, optimizer, inputs)
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    return {}


def profiler():
    from torch.profiler import ProfilerActivity, profile
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(8, 64, device="cuda")
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        train_step(model, optimizer, inputs)
        torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        trace.export_chrome_trace(file.name)
        events = json.load(open(file.name))["traceEvents"]
    ops = {e["args"].get("External id") for e in events if e.get("cat") == "cpu_op"}
    kernels = [e for e in events if e.get("cat") == "kernel"]
    return {"correlations": [e["args"]["correlation"] for e in kernels],
            "linked": sum(e["args"].get("External id") in ops for e in kernels)}


# --- on several ranks ---------------------------------------------------------------------------


def on_ranks(body):
    import torch.distributed as dist
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    found = body(dist, dist.get_rank())
    torch.cuda.synchronize()
    dist.destroy_process_group()
    return found


def collectives():
    def device(values, dtype=torch.float32):
        return torch.tensor(values, dtype=dtype, device="cuda")

    def body(dist, rank):
        found = {}
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64):
            x = device([rank + 1, 2 * (rank + 1)], dtype)
            dist.all_reduce(x)
            found[f"sum {dtype}"] = x.tolist()
        for kind in ("AVG", "MAX", "MIN", "PRODUCT"):
            x = device([rank + 2.0])
            dist.all_reduce(x, op=getattr(dist.ReduceOp, kind))
            found[kind] = x.tolist()
        x, out = device([rank, rank + 10.0]), device([0.0] * 4)
        dist.all_gather(list(out.chunk(2)), x)
        found["all_gather"] = out.tolist()
        out = device([0.0] * 2)
        dist.reduce_scatter(out, list(device([1.0 + rank, 2, 3, 4.0 + rank]).chunk(2)))
        found["reduce_scatter"] = out.tolist()
        x = device([rank * 5.0 + 1])
        dist.broadcast(x, 1)
        found["broadcast"] = x.tolist()
        dist.all_to_all_single(out, device([rank * 10.0, rank * 10.0 + 1]))
        found["all_to_all"] = out.tolist()
        x, y = device([7.0 + rank]), device([0.0])
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1 - rank),
                                            dist.P2POp(dist.irecv, y, 1 - rank)]):
            work.wait()
        found["exchange"] = y.tolist()
        objects = [None, None]
        dist.all_gather_object(objects, {"rank": rank})
        found["objects"] = objects
        half = dist.new_group([1])  # made by splitting
        if rank == 1:
            x = device([3.0])
            dist.all_reduce(x, group=half)
            found["alone"] = x.tolist()
        return found

    return on_ranks(body)


def ddp():
    def body(_, rank):
        model = nn.parallel.DistributedDataParallel(mlp(), device_ids=[torch.cuda.current_device()])
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        for _ in range(5):
            train_step(model, optimizer, torch.randn(8, 64, device="cuda"))
        return {}

    return on_ranks(body)


def fsdp():
    from torch.distributed.fsdp import fully_shard

    def body(_, rank):
        model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(3)]).cuda()
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            train_step(model, optimizer, torch.randn(8, 64, device="cuda"))
        return {}

    return on_ranks(body)


def captured_collective():
    def body(dist, rank):
        x = torch.ones(4, device="cuda")
        dist.all_reduce(x)
        x.fill_(1.0)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            dist.all_reduce(x)
        x.copy_(torch.ones(4))
        for _ in range(3):
            graph.replay()
        return {"doubled thrice": x.tolist()}

    return on_ranks(body)


def slow_rank():
    import time

    def body(dist, rank):
        x = torch.ones(1024, device="cuda")
        dist.all_reduce(x)
        torch.cuda.synchronize()
        time.sleep(0.2 * rank)
        dist.all_reduce(x)
        return {}

    return on_ranks(body)


def killed():
    """Ranks that die while others wait for them."""
    import signal

    def body(dist, rank):
        dist.barrier()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.ones(1, device="cuda"))
        torch.cuda.synchronize()
        return {}

    return on_ranks(body)


if __name__ == "__main__":
    result = globals()[sys.argv[1]]()
    with open(os.path.join(sys.argv[2], f"found.{os.environ.get('RANK', '0')}"), "w") as out:
        json.dump(result, out)
    # CPython before 3.12 ends threads that ask for the GIL when it finalises, and PyTorch's autograd
    # thread may still be letting go of a graph then: std::terminate. So no finalisation.
    sys.stdout.flush()
    ctypes.CDLL(None).quick_exit(0)
