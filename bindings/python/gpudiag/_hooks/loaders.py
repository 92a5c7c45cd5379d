# SPDX-License-Identifier: Apache-2.0
"""Loaders that are not torch's: NVIDIA DALI, WebDataset, Hugging Face datasets.

DALI's iterators wait for a pipeline that works by itself; the other two make samples on the thread
that asks, or inside a DataLoader, whose range is then the outer one and counts.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, List

from torch.utils.data import get_worker_info

from .. import _native
from .dataloader import wrap_next
from ._wrap import all_of, leave_traceback, replace, when_imported

_DATA_LOADING = _native.CAUSE_CODES["data_loading"]


class RangedIterator:
    """An iterator whose every ``next()`` is a range."""

    def __init__(self, inner: Iterator[Any], step: Callable[[Any], Any]) -> None:
        self._inner = inner
        self._step = step

    def __iter__(self) -> "RangedIterator":
        return self

    def __next__(self) -> Any:
        try:
            return self._step(self._inner)
        except BaseException as error:
            leave_traceback(error)
            raise

    def __getattr__(self, name: str) -> Any:  # generators have send() and close()
        return getattr(self._inner, name)


def _ranged_iter(name: str) -> Callable[[Callable], Callable]:
    step = wrap_next(next, name, _DATA_LOADING)

    def make(original: Callable) -> Callable:
        def __iter__(self: Any) -> Any:
            made = original(self)
            if get_worker_info() is not None:  # a DataLoader's worker
                return made
            return RangedIterator(iter(made), step)

        return __iter__

    return make


def _wait_next(name: str) -> Callable[[Callable], Callable]:
    return lambda original: wrap_next(original, f"wait for batch: {name}")


def install() -> Callable[[], None]:
    removers: List[Callable[[], None]] = []

    def dali(module: Any) -> None:
        for name, thing in list(vars(module).items()):
            if isinstance(thing, type) and thing.__module__ == module.__name__ and "__next__" in vars(thing):
                removers.append(replace(thing, "__next__", _wait_next(name)))

    def iterates(owner: str) -> Callable[[Any], None]:
        def imported(module: Any) -> None:
            thing = getattr(module, owner, None)
            if isinstance(thing, type) and "__iter__" in vars(thing):
                removers.append(replace(thing, "__iter__", _ranged_iter(f"{module.__name__}.{owner}")))
        return imported

    when_imported("nvidia.dali.plugin.pytorch", dali)
    when_imported("nvidia.dali.plugin.base_iterator", dali)
    for owner in ("WebDataset", "DataPipeline", "WebLoader"):
        for module in ("webdataset.compat", "webdataset.pipeline"):
            when_imported(module, iterates(owner))
    for owner in ("IterableDataset",):
        when_imported("datasets.iterable_dataset", iterates(owner))
    when_imported("datasets.arrow_dataset", iterates("Dataset"))
    return all_of(removers)
