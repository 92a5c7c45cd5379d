# SPDX-License-Identifier: Apache-2.0
"""Training scripts: `programs.py NAME [ARGUMENTS]` runs one. None names gpudiag unless its name says so.

Values on the simulated GPU are zero or stale, so no program branches on them.
"""
import gc
import json
import os
import sys
import time

if os.environ.get("TEST_IMPORT") == "before":
    import gpudiag.torch  # noqa: F401

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

if os.environ.get("TEST_IMPORT") == "after":
    import gpudiag.torch  # noqa: F401

STEPS = 12


class Slow(Dataset):
    """Samples that take their time."""

    def __init__(self, count=STEPS * 4, seconds=0.002):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.seconds)
        if index == int(os.environ.get("TEST_DIE_AT", -1)):
            os._exit(7)
        return torch.full((64,), float(index))


class Stream(IterableDataset):
    def __iter__(self):
        for index in range(STEPS * 4):
            time.sleep(0.002)
            yield torch.full((64,), float(index))


def mlp():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()


def made(model=None):
    model = model or mlp()
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def train_step(model, optimizer, batch):
    optimizer.zero_grad()
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
    return loss


def end(**found):
    """Lets autograd's thread come to rest, which on Python 3.11 races with the end of the process."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    print(json.dumps(found), flush=True)
    time.sleep(0.3)


# --- loaders --------------------------------------------------------------------------------------


def loader(kind, dataset="map"):
    options = {"single": {"num_workers": 0},
               "workers": {"num_workers": 2},
               "persistent": {"num_workers": 2, "persistent_workers": True},
               "pinned": {"num_workers": 2, "pin_memory": True},
               "spawn": {"num_workers": 2, "multiprocessing_context": "spawn"},
               "forkserver": {"num_workers": 2, "multiprocessing_context": "forkserver"}}[kind]
    model, optimizer = made()
    # A process that uses CUDA first forks its workers afterwards: the worst case for us.
    train_step(model, optimizer, torch.zeros(4, 64, device="cuda"))
    seconds = 0.01 if options["num_workers"] else 0.004
    data = Stream() if dataset == "stream" else Slow(seconds=seconds)
    batches = DataLoader(data, batch_size=4, **options)
    sums = []
    for _ in range(2):
        for batch in batches:
            sums.append(float(batch.sum()))
            train_step(model, optimizer, batch.cuda(non_blocking=True))
    end(sums=sums)


def dying_worker():
    model, optimizer = made()
    for batch in DataLoader(Slow(), batch_size=4, num_workers=2):
        train_step(model, optimizer, batch.cuda())
    end()


# --- boundaries -----------------------------------------------------------------------------------


def steps():
    model, optimizer = made()
    losses = []
    for _ in range(STEPS):
        losses.append(train_step(model, optimizer, torch.ones(4, 64, device="cuda")).item())
    end(losses=losses)


def accumulation():
    model, optimizer = made()
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(4):
            model(torch.ones(4, 64, device="cuda")).sum().backward()
        optimizer.step()
    end()


def two_optimizers():
    (model, first), (other, second) = made(), made()
    for _ in range(STEPS):
        train_step(model, first, torch.ones(4, 64, device="cuda"))
        train_step(other, second, torch.ones(4, 64, device="cuda"))
    end()


def leader_leaves():
    model, first = made()
    for _ in range(3):
        train_step(model, first, torch.ones(4, 64, device="cuda"))
    del first
    gc.collect()
    _, second = made(model)
    for _ in range(STEPS):
        train_step(model, second, torch.ones(4, 64, device="cuda"))
    end()


def scaler():
    """Every third step is skipped, as with infinite gradients."""
    model, optimizer = made()
    scaler = torch.amp.GradScaler("cuda")
    step = 0
    original = scaler._maybe_opt_step
    scaler._maybe_opt_step = lambda *a, **k: None if step % 3 == 2 else original(*a, **k)
    for step in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(model(torch.ones(4, 64, device="cuda")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    end()


def explicit():
    import gpudiag.torch
    model, optimizer = made()
    for number in range(STEPS):
        for _ in range(2):
            train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
        gpudiag.torch.step(100 + number)
    end()


def graphs():
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True, capturable=True)
    inputs = torch.ones(4, 64, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train_step(model, optimizer, inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train_step(model, optimizer, inputs)
    for _ in range(STEPS):
        time.sleep(0.002)
        graph.replay()
    end()


def evaluation(style):
    model, optimizer = made()
    training, validation = Slow(16, 0.001), Slow(12, 0.001)
    for _ in range(2):
        model.train()
        for batch in DataLoader(training, batch_size=4):
            train_step(model, optimizer, batch.cuda())
        if style == "no_grad":
            with torch.no_grad():
                for batch in DataLoader(validation, batch_size=4):
                    model(batch.cuda())
        elif style == "eval":
            model.eval()
            for batch in DataLoader(validation, batch_size=4):
                with torch.no_grad():
                    model(batch.cuda())
        elif style == "frozen":  # a part that stays in eval() is no evaluation
            model[0].eval()
    end()


def operators():
    model, optimizer = made()
    for _ in range(40):
        loss = train_step(model, optimizer, torch.ones(256, 64, device="cuda"))
        loss.item()
        with torch.autograd.profiler.record_function("a scope of the script's"):
            time.sleep(0.002)
    end()


# --- causes ---------------------------------------------------------------------------------------


def checkpoints():
    model, optimizer = made()
    for step in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
        if step % 2 == 1:
            torch.save({"model": model.state_dict(), "more": torch.zeros(20_000_000)}, "/dev/null")
    end()


def garbage():
    model, optimizer = made()
    keep = [[index] for index in range(300_000)]
    for _ in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
        gc.collect()
    end(kept=len(keep))


def empty_cache():
    model, optimizer = made()
    for _ in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
        torch.cuda.empty_cache()
    end()


# --- ends -----------------------------------------------------------------------------------------


def exception():
    model, optimizer = made()
    for step in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
    torch.cuda.synchronize()
    time.sleep(0.3)
    raise ValueError("the loop broke")


def interrupted():
    model, optimizer = made()
    while True:
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
        print("step", flush=True)
        time.sleep(0.005)


def leave_at_once():
    model, optimizer = made()
    for _ in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
    torch.cuda.synchronize()
    time.sleep(1.0)
    print(json.dumps({}), flush=True)
    os._exit(3)


# --- what is to be seen of us ---------------------------------------------------------------------


class Broken(Slow):
    def __getitem__(self, index):
        if index == 9:
            raise KeyError("a sample is missing")
        return super().__getitem__(index)


class Refusing(nn.Linear):
    def train(self, mode=True):
        if not mode:
            raise RuntimeError("no evaluation")
        return super().train(mode)


def fails(where):
    model, optimizer = made()
    train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
    torch.cuda.synchronize()
    time.sleep(0.3)
    if where in ("loader", "workers"):
        for batch in DataLoader(Broken(), batch_size=4, num_workers=2 if where == "workers" else 0):
            pass
    elif where == "save":
        torch.save({}, "/no/such/folder/checkpoint.pt")
    elif where == "train":
        nn.Sequential(Refusing(2, 2)).eval()
    elif where == "scaler":
        torch.amp.GradScaler("cuda").step(optimizer)


class Longer(IterableDataset):
    def __len__(self):
        return 1

    def __repr__(self):
        return "Longer"

    def __iter__(self):
        return iter([torch.ones(2)] * 3)


def warned():
    model, optimizer = made()
    train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
    loader = DataLoader(Longer(), batch_size=1)
    len(loader)
    for batch in loader:
        pass
    end()


def looked_at():
    import inspect
    import pickle
    import torch.distributed.checkpoint as checkpoint
    made()
    functions = [torch.save, torch.cuda.empty_cache, checkpoint.save, DataLoader.__iter__, nn.Module.train]
    end(pickled=[pickle.loads(pickle.dumps(one)) is one for one in functions[:4]],
        names=[one.__qualname__ for one in functions],
        signatures=[str(inspect.signature(one)) for one in functions],
        arguments=[inspect.getfullargspec(one)[:3] for one in functions])


class Plain(torch.optim.Optimizer):
    """Nothing in its step() breaks a graph."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.add_(parameter.grad, alpha=-0.1)


def compiled_step(kind):
    model = mlp()
    if kind == "own":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = torch.compile(lambda: optimizer.step(), backend="eager")
    else:
        optimizer = Plain(model.parameters())
        step = torch.compile(lambda: optimizer.step(), backend="eager", fullgraph=True)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.ones(4, 64, device="cuda")).sum().backward()
        step()
    end()


# --- the package's own functions ------------------------------------------------------------------


def on_iteration():
    import gpudiag.torch
    seen = []
    gpudiag.torch.on_iteration(seen.append)
    gpudiag.torch.on_iteration(lambda iteration: 1 / 0)
    model, optimizer = made()
    for _ in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
        time.sleep(0.05)
    torch.cuda.synchronize()
    time.sleep(1.5)
    end(seen=seen, last=gpudiag.torch.last(), failures=gpudiag.torch.info()["callback_failures"])


def leaving_callback():
    import gpudiag.torch
    seen = []
    gpudiag.torch.on_iteration(lambda iteration: sys.exit(5))
    gpudiag.torch.on_iteration(lambda iteration: seen.append(iteration["index"]))
    model, optimizer = made()
    for _ in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
    gpudiag.torch.stop()
    end(seen=len(seen), failures=gpudiag.torch.info()["callback_failures"])


def report():
    import gpudiag.torch
    model, optimizer = made()
    with gpudiag.torch.profile() as profile:
        for batch in DataLoader(Slow(), batch_size=4):
            train_step(model, optimizer, batch.cuda())
            profile.step()
    end(report=profile.report(), active=gpudiag.torch.active())


def frame():
    import gpudiag.torch
    model, optimizer = made()
    for _ in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
    gpudiag.torch.stop()
    made_of = gpudiag.torch.report(pandas=True)
    end(rows=len(made_of), trained=[int(index) for index in made_of[made_of["opened_by"] == "optimizer"]["index"]],
        wall=int(made_of["wall_ns"].sum()), columns=list(made_of.columns))


def cycles(count):
    import gpudiag.torch
    model, optimizer = made()

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    marks = []
    for cycle in range(int(count)):
        gpudiag.torch.start(log="off")
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
        gpudiag.torch.stop()
        if cycle in (int(count) // 5, int(count) - 1):
            marks.append(resident())
    end(grown=marks[1] - marks[0], active=gpudiag.torch.active(),
        clean=torch.utils.data.dataloader._BaseDataLoaderIter.__next__.__module__)


def arguments():
    import gpudiag.torch as g
    raised = []
    for call in (lambda: g.start(lag="on"), lambda: g.start(budget="much"), lambda: g.range(3),
                 lambda: g.range("x", cause="magic"), lambda: g.step(-1), lambda: g.step("1"),
                 lambda: g.on_iteration(3), lambda: g.profile(on_iteration=3), lambda: g.profile(rank="one")):
        try:
            call()
            raised.append(None)
        except Exception as error:
            raised.append(type(error).__name__)

    @g.range("decorated", cause="host")
    def decorated(a, b=2):
        """Doc."""
        return a + b

    with g.range("outer"), g.range("inner", cause="sync"):
        total = decorated(1)
    end(raised=raised, total=total, name=decorated.__name__, doc=decorated.__doc__)


def threads():
    import threading
    model, optimizer = made()

    def copies():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(20):
                torch.ones(1000, device="cuda").mul_(2)
                time.sleep(0.002)

    others = [threading.Thread(target=copies) for _ in range(2)]
    for other in others:
        other.start()
    for _ in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
    for other in others:
        other.join()
    end()


# --- loaders and trainers of others ----------------------------------------------------------------


def train_over(batches):
    model, optimizer = made()
    for batch in batches:
        train_step(model, optimizer, batch.cuda())
    end()


def stateful(workers):
    from torchdata.stateful_dataloader import StatefulDataLoader
    train_over(StatefulDataLoader(Slow(seconds=0.005 if workers == "0" else 0.02), batch_size=4,
                                  num_workers=int(workers)))


def webdataset():
    import io
    import tarfile
    import tempfile
    import webdataset as wds

    def sample(parts):
        time.sleep(0.003)
        return (torch.full((64,), float(parts["cls"])),)

    with tempfile.NamedTemporaryFile(suffix=".tar") as file:
        with tarfile.open(file.name, "w") as tar:
            for index in range(STEPS * 4):
                member = tarfile.TarInfo(f"{index:04d}.cls")
                member.size = 2
                tar.addfile(member, io.BytesIO(b"%2d" % index))
        train_over(batch[0] for batch in wds.WebDataset(file.name, shardshuffle=False).decode().map(sample).batched(4))


def datasets():
    import datasets

    def samples():
        for index in range(STEPS * 4):
            time.sleep(0.003)
            yield {"x": [float(index)] * 64}

    train_over(torch.tensor([sample["x"]]) for sample in datasets.IterableDataset.from_generator(samples))


def dali():
    from nvidia.dali.plugin.pytorch import DALIGenericIterator
    train_over(DALIGenericIterator(STEPS))


def deepspeed():
    """The stand-in's engine steps its optimizer once a parameter group, every second call."""
    from deepspeed.runtime.engine import DeepSpeedEngine
    model = mlp()
    engine = DeepSpeedEngine(model, torch.optim.SGD(model.parameters(), lr=0.1), groups=3, accumulation=2)
    for _ in range(STEPS * 2):
        model(torch.ones(4, 64, device="cuda")).sum().backward()
        engine.step()
    end()


def distributed_checkpoint():
    import tempfile
    import torch.distributed.checkpoint as checkpoint
    model, optimizer = made()
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
            if step % 2:
                checkpoint.save({"model": model.state_dict()}, checkpoint_id=f"{folder}/{step}")
        end()


def lightning():
    import tempfile
    import lightning.pytorch as pl
    from lightning.pytorch.loggers import CSVLogger
    import gpudiag.lightning

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = nn.Linear(64, 10)

        def training_step(self, batch, index):
            return self.model(batch).sum()

        def validation_step(self, batch, index):
            self.model(batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    with tempfile.TemporaryDirectory() as folder:
        logger = CSVLogger(folder)
        trainer = pl.Trainer(accelerator="gpu", devices=1, max_epochs=3, logger=logger, log_every_n_steps=1,
                             enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                             callbacks=[gpudiag.lightning.GpudiagCallback()], default_root_dir=folder)
        trainer.fit(Module(), DataLoader(Slow(seconds=0.02), batch_size=4), DataLoader(Slow(8), batch_size=4))
        with open(f"{logger.log_dir}/metrics.csv") as file:
            columns = file.readline().strip().split(",")
    end(columns=columns)


def accelerated():
    import tempfile
    from accelerate import Accelerator
    accelerator = Accelerator()
    model, optimizer = made()
    batches = DataLoader(Slow(count=STEPS * 4 * accelerator.num_processes, seconds=0.0), batch_size=4)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    with tempfile.TemporaryDirectory() as folder:
        for number, batch in enumerate(batches):
            optimizer.zero_grad()
            accelerator.backward(model(batch).sum())
            optimizer.step()
            if number % 3 == 2:
                accelerator.save_state(folder)
    accelerator.end_training()
    end(ranks=accelerator.num_processes)


def transformers():
    import tempfile
    import transformers
    import gpudiag.transformers

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = nn.Linear(64, 10)

        def forward(self, x, labels=None):
            return {"loss": self.model(x).sum()}

    class Items(Slow):
        def __getitem__(self, index):
            return {"x": super().__getitem__(index)}

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, num_train_epochs=3, per_device_train_batch_size=4, logging_steps=1, report_to=[],
            save_strategy="no", disable_tqdm=True, max_grad_norm=0.0, dataloader_pin_memory=False)
        trainer = transformers.Trainer(model=Model(), args=arguments, train_dataset=Items(seconds=0.02))
        gpudiag.transformers.GpudiagCallback.add_to(trainer)
        trainer.train()
    end(history=trainer.state.log_history)


# --- several ranks --------------------------------------------------------------------------------


def rank_steps(rank, ranks):
    import torch.distributed as dist
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    model = nn.parallel.DistributedDataParallel(mlp(), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(STEPS):
        train_step(model, optimizer, torch.ones(4, 64, device="cuda"))
    torch.cuda.synchronize()
    dist.destroy_process_group()


def ranks():
    rank_steps(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    end()


def spawned_rank(rank):
    os.environ["RANK"] = str(rank)
    rank_steps(rank, 2)
    time.sleep(0.3)


def started_ranks(method):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["TEST_PORT"])
    torch.multiprocessing.start_processes(spawned_rank, nprocs=2, start_method=method)
    print("done")


def traced_from_outside(pattern):
    """Trains until somebody has written a trace, and a while longer."""
    import glob
    model, optimizer = made()
    batch = torch.ones(4, 64, device="cuda")
    give_up, more = time.monotonic() + 90, 50
    while more > 0:
        train_step(model, optimizer, batch)
        time.sleep(0.01)
        written = [path for path in glob.glob(pattern) if "}" in open(path).read()[-4:]]
        if written or time.monotonic() > give_up:
            more -= 1
    events = json.load(open(written[0]))["traceEvents"] if written else []
    end(kernels=sum(event.get("cat") == "kernel" for event in events))


def no_cuda():
    end(value=float(torch.ones(3).sum()))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
