# SPDX-License-Identifier: Apache-2.0
"""torch.utils.data.DataLoader: the wait for the next batch, and the start of workers.

The iterator's class is the range's name, which libgpudiag's table knows: a single-process iterator
makes the batch on this thread (`inline`), a multi-process one waits for somebody who does.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional

from .. import _native, _state
from .._loop import loop
from ._wrap import all_of, in_range, replace, when_imported

_nesting = threading.local()  # a loader inside a loader: the outer one's batch counts


def wrap_next(original: Callable, name: Optional[str] = None, cause: int = 0) -> Callable:
    """``__next__`` as a range. Without `name` it is that of the iterator's class."""
    fixed = name.encode() if name else None
    names: dict = {}

    def __next__(self: Any) -> Any:
        if not _state.on:
            return original(self)
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
        _native.range_push(label, cause)
        try:
            return original(self)
        except StopIteration:
            if depth == 0:
                loop.loader_ended()
            raise
        finally:
            _native.range_pop()
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
