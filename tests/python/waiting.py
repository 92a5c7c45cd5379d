# SPDX-License-Identifier: Apache-2.0
"""Training scripts whose host is held up, each by one thing: `waiting.py NAME SECONDS` runs one.

None names gpudiag. Values on the simulated GPU are zero or stale, so no program branches on them.
"""
import ctypes
import os
import socket
import sys
import tempfile
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LONG = 1_000_000  # samples: longer than any run
BATCH = 4


def burn(seconds):
    """Processor time of this thread, however long that takes."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


class Samples(Dataset):
    def __init__(self, make, count=LONG):
        self.make, self.count = make, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.make()
        return torch.full((64,), float(index))


def train(loader, seconds, hold_up=lambda: None):
    torch.manual_seed(1)
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for batch in loader:
            tensor = batch if torch.is_tensor(batch) else torch.zeros(BATCH, 64)
            optimizer.zero_grad()
            model(tensor.cuda()).sum().backward()
            optimizer.step()
            hold_up()
            if time.monotonic() >= until:
                break
    torch.cuda.synchronize()
    print("trained", flush=True)
    time.sleep(0.3)  # autograd's thread comes to rest, which on Python 3.11 races with the end of the process


# --- data loading ---------------------------------------------------------------------------------


def one_busy_worker(seconds):
    """40 ms of processor time a batch, one worker."""
    train(DataLoader(Samples(lambda: burn(0.010)), batch_size=BATCH, num_workers=1), seconds)


def more_workers_than_processors(seconds):
    workers = 2 * len(os.sched_getaffinity(0))
    train(DataLoader(Samples(lambda: burn(0.030)), batch_size=BATCH, num_workers=workers), seconds)


class Storage:
    """Answers each request after a while; workers ask it over a socket of their own."""

    def __init__(self):
        self.path = os.path.join(tempfile.mkdtemp(), "storage")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    @staticmethod
    def answer(connection):
        while connection.recv(1):
            time.sleep(0.010)
            connection.send(b"x")


class Asking:
    """A sample's way to the storage, one a process."""

    def __init__(self, path):
        self.path, self.pid, self.connection = path, None, None

    def __call__(self):
        if self.pid != os.getpid():
            self.pid, self.connection = os.getpid(), socket.socket(socket.AF_UNIX)
            self.connection.connect(self.path)
        self.connection.send(b"x")
        self.connection.recv(1)


def workers_that_ask_storage(seconds):
    storage = Storage()
    train(DataLoader(Samples(Asking(storage.path)), batch_size=BATCH, num_workers=2), seconds)


def inline_that_asks_storage(seconds):
    storage = Storage()
    train(DataLoader(Samples(Asking(storage.path)), batch_size=BATCH), seconds)


def inline(seconds):
    train(DataLoader(Samples(lambda: burn(0.010)), batch_size=BATCH), seconds)


def rebuilt():
    burn(0.040)
    return Heavy()


class Heavy:
    """Quickly made, and slow to take out of a queue."""

    def __reduce__(self):
        return rebuilt, ()


def collate_heavy(samples):
    return Heavy()


def heavy_batches(seconds):
    loader = DataLoader(Samples(lambda: None), batch_size=BATCH, num_workers=2, collate_fn=collate_heavy)
    train(loader, seconds)


def slow_to_start(worker):
    time.sleep(0.05)


def short_epochs(seconds):
    loader = DataLoader(Samples(lambda: None, count=2 * BATCH), batch_size=BATCH, num_workers=1,
                        worker_init_fn=slow_to_start)
    train(loader, seconds)


# --- host -----------------------------------------------------------------------------------------


def another_thread_holds_the_gil(seconds):
    """A native call that keeps the GIL, as extensions do that forget to let go of it."""
    library = ctypes.PyDLL(None)

    def hold():
        while True:
            library.usleep(30_000)
            time.sleep(0.001)

    threading.Thread(target=hold, daemon=True).start()
    train(DataLoader(Samples(lambda: None), batch_size=BATCH), seconds, lambda: burn(0.002))


if __name__ == "__main__":
    globals()[sys.argv[1]](float(sys.argv[2]))
