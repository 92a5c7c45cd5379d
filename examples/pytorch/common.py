# SPDX-License-Identifier: Apache-2.0
"""What the examples share: a small model, made-up data, and the troubles that switches bring in.

Without switches an example is a healthy job: the GPU has work for some 40 ms a step, and the host
stays ahead of it. Each switch of the second group is a habit that training scripts really have.
"""

from __future__ import annotations

import argparse
import gc
import pathlib
import tempfile
import time
from typing import Any, Callable, Iterator, List, Tuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

VOCABULARY = 1024
LENGTH = 1024  # tokens of a sample


def parse_options(description: str) -> argparse.Namespace:
    """The command line, the same for all examples."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    job = parser.add_argument_group("the job")
    job.add_argument("--steps", type=int, default=100, help="optimizer steps to train (default %(default)s)")
    job.add_argument("--batch", type=int, default=16, help="samples a batch (default %(default)s)")
    job.add_argument("--width", type=int, default=2048, help="width of the model (default %(default)s)")
    job.add_argument("--layers", type=int, default=4, help="its hidden layers (default %(default)s)")
    job.add_argument("--workers", type=int, default=2,
                     help="processes that load data; 0: the training process does (default %(default)s)")
    job.add_argument("--log-every", type=int, default=10, help="steps between two printed losses (default %(default)s)")
    job.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()),
                     help="where checkpoints go (default %(default)s)")
    trouble = parser.add_argument_group("troubles")
    trouble.add_argument("--sample-ms", type=float, default=0, metavar="X",
                         help="time to read and decode a sample, which many --workers hide and few do not")
    trouble.add_argument("--item-each-step", action="store_true",
                         help="read the loss between the forward and the backward pass")
    trouble.add_argument("--metrics-ms", type=float, default=0, metavar="X",
                         help="Python that computes metrics at the same place, hidden while the host is ahead")
    trouble.add_argument("--tiny-kernels", type=int, default=0, metavar="N",
                         help="so many small kernels in each forward pass")
    trouble.add_argument("--checkpoint-every", type=int, default=0, metavar="N",
                         help="save model and optimizer at every N-th step")
    trouble.add_argument("--gc-storm", action="store_true",
                         help="many Python objects, and a full garbage collection at each step")
    trouble.add_argument("--empty-cache", action="store_true", help="torch.cuda.empty_cache() at each step")
    trouble.add_argument("--logger-ms", type=float, default=0, metavar="X",
                         help="a logger that takes so long at each step")
    trouble.add_argument("--slow-rank", type=int, default=None, metavar="R",
                         help="rank R of several takes --slow-ms longer for each step")
    trouble.add_argument("--slow-ms", type=float, default=50, metavar="X", help="(default %(default)s)")
    return parser.parse_args()


# --- the model ------------------------------------------------------------------------------------


class TinyKernels(nn.Module):
    """Feature engineering, one small operation at a time."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        features = hidden.new_ones(64)
        for _ in range(self.count):
            features = features * 0.5
        return hidden


def make_model(options: argparse.Namespace) -> nn.Module:
    """Predicts a token from the one before it."""
    torch.manual_seed(0)
    layers: List[nn.Module] = [nn.Embedding(VOCABULARY, options.width)]
    for _ in range(options.layers):
        layers += [nn.Linear(options.width, options.width), nn.ReLU()]
    if options.tiny_kernels:
        layers.append(TinyKernels(options.tiny_kernels))
    return nn.Sequential(*layers, nn.Linear(options.width, VOCABULARY))


def loss_of(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


# --- the data -------------------------------------------------------------------------------------


class Tokens(Dataset):
    """Made-up text: sample `index` is always the same."""

    def __init__(self, samples: int, sample_ms: float) -> None:
        self._samples = samples
        self._sample_ms = sample_ms

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> Tuple[torch.Tensor, torch.Tensor]:
        if self._sample_ms:
            time.sleep(self._sample_ms / 1e3)  # reading and decoding
        tokens = torch.randint(VOCABULARY, (LENGTH + 1,), generator=torch.Generator().manual_seed(index))
        return tokens[:-1], tokens[1:]


def make_dataset(options: argparse.Namespace, batches: int) -> Tokens:
    return Tokens(batches * options.batch, options.sample_ms)


def make_loader(options: argparse.Namespace, sampler: "Sampler | None" = None, batches: int = 1000) -> DataLoader:
    return DataLoader(make_dataset(options, batches), batch_size=options.batch, sampler=sampler,
                      num_workers=options.workers, persistent_workers=options.workers > 0, pin_memory=True)


def batches_on(device: torch.device, loader: DataLoader) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
    """Batches without end, on the device."""
    while True:
        for inputs, targets in loader:
            yield inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)


# --- the troubles ---------------------------------------------------------------------------------


class Troubles:
    """What ails real training loops. Without switches it does nothing."""

    def __init__(self, options: argparse.Namespace, rank: int = 0) -> None:
        self._options = options
        self._rank = rank
        self._heap: List[list] = []
        self._last_loss = 0.0

    def after_forward(self, loss: torch.Tensor) -> None:
        """Between the forward and the backward pass."""
        if self._options.item_each_step:
            self._last_loss = loss.item()
        if self._options.metrics_ms:
            time.sleep(self._options.metrics_ms / 1e3)

    def after_step(self, step: int, save: Callable[[pathlib.Path], Any]) -> None:
        """After optimizer step `step`, counted from 0; `save` writes a checkpoint."""
        options = self._options
        if options.gc_storm:
            self._heap = self._heap or [[] for _ in range(1_000_000)]
            gc.collect()
        if options.empty_cache:
            torch.cuda.empty_cache()
        if options.logger_ms:
            time.sleep(options.logger_ms / 1e3)
        if options.slow_rank == self._rank:
            time.sleep(options.slow_ms / 1e3)
        if options.checkpoint_every and (step + 1) % options.checkpoint_every == 0 and self._rank == 0:
            save(options.folder / "checkpoint.pt")


def log_loss(options: argparse.Namespace, step: int, loss: torch.Tensor) -> None:
    if (step + 1) % options.log_every == 0:
        print(f"step {step + 1} loss {loss.item():.4f}", flush=True)


def save_checkpoint(path: pathlib.Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
