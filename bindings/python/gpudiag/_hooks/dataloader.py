# SPDX-License-Identifier: Apache-2.0
"""torch.utils.data.DataLoader: the wait for the next batch, and the start of workers.

The iterator's class is the range's name, which libgpudiag's table knows: a single-process iterator
makes the batch on this thread (`inline`), a multi-process one waits for somebody who does. Where the
batch was there already nobody was waited for, and the range has another name.
"""

from __future__ import annotations

import fcntl
import termios
import threading
from typing import Any, Callable, Optional

from .. import _native, _state
from .._loop import loop
from ._wrap import all_of, in_range, leave_traceback, replace, when_imported

_nesting = threading.local()  # a loader inside a loader: the outer one's batch counts
# Data loading of the thread that asks, by libgpudiag's table.
_RECEIVED = b"DataLoader.__next__ (batch was ready)"


class _Arrival:
    """Whether workers had the batch ready when it was asked for.

    How long ``__next__`` takes does not tell: on a busy machine, or where the thread that pins memory
    has to wait for the GIL, receiving a batch that was ready takes milliseconds.
    """

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator
        self._kept = self._count_kept()
        wanted = iterator._task_info.get(iterator._rcvd_idx)
        self._there = (wanted is not None and len(wanted) > 1) or self._queued()

    def _count_kept(self) -> int:
        """Batches that came before their turn."""
        return sum(len(task) > 1 for task in self._iterator._task_info.values())

    def _queued(self) -> bool:
        if self._iterator._pin_memory and self._iterator._data_queue.qsize() > 0:
            return True
        # poll() of the connection would take ten times as long.
        pipe = self._iterator._worker_result_queue._reader.fileno()
        return any(fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))

    def was_ready(self) -> bool:
        """Asked when the batch has come. If others were read on the way, it was not the one that was there."""
        return self._there and self._count_kept() <= self._kept


def _arrival(iterator: Any) -> Optional[_Arrival]:
    """None for iterators without workers, and of another torch."""
    if not hasattr(iterator, "_worker_result_queue"):
        return None
    try:
        return _Arrival(iterator)
    except (AttributeError, OSError, ValueError):
        return None


def wrap_next(original: Callable, name: Optional[str] = None, cause: int = 0) -> Callable:
    """``__next__`` as a range. Without `name` it is that of the iterator's class."""
    fixed = name.encode() if name else None
    names: dict = {}

    def __next__(self: Any) -> Any:
        if not _state.on:
            try:
                return original(self)
            except BaseException as error:
                leave_traceback(error)
                raise
        label = fixed
        if label is None:
            kind = type(self)
            label = names.get(kind)
            if label is None:
                label = names[kind] = f"{kind.__name__}.__next__".encode()
        depth = getattr(_nesting, "depth", 0)
        _nesting.depth = depth + 1
        if depth == 0:
            loop.batch_asked()
        arrival = _arrival(self)
        start = _native.now_ns()
        if arrival is None:
            _native.range_push(label, cause)
        try:
            return original(self)
        except BaseException as error:
            if depth == 0 and isinstance(error, StopIteration):
                loop.loader_ended()
            leave_traceback(error)
            raise
        finally:
            if arrival is None:
                _native.range_pop()
            else:
                _native.annotate(_RECEIVED if arrival.was_ready() else label, cause, start, _native.now_ns())
            _nesting.depth = depth

    return __next__


def install() -> Callable[[], None]:
    from torch.utils.data import dataloader
    removers = [replace(dataloader._BaseDataLoaderIter, "__next__", wrap_next),
                replace(dataloader.DataLoader, "__iter__", in_range("DataLoader.__iter__"))]

    def stateful(module: Any) -> None:
        for thing in list(vars(module).values()):
            if not isinstance(thing, type) or thing.__module__ != module.__name__:
                continue
            if issubclass(thing, dataloader._BaseDataLoaderIter) and "__next__" in vars(thing):
                removers.append(replace(thing, "__next__", wrap_next))
            elif issubclass(thing, dataloader.DataLoader) and "__iter__" in vars(thing):
                removers.append(replace(thing, "__iter__", in_range("DataLoader.__iter__")))

    when_imported("torchdata.stateful_dataloader.stateful_dataloader", stateful)
    return all_of(removers)
