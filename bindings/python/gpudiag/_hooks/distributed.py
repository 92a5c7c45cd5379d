# SPDX-License-Identifier: Apache-2.0
"""Waits for other ranks on the host: gloo and other works on the CPU, barriers, the store."""

from __future__ import annotations

from typing import Any, Callable, List

from .. import _native, _state
from ._wrap import all_of, in_range, leave_traceback, replace, when_imported

_CAUSE = "communication_wait"
# Waiting for a work of NCCL's only makes a stream wait. What returns sooner than this has not blocked.
_BLOCKED_NS = 100_000


def _timed(name: bytes) -> Callable[[Callable], Callable]:
    """For replace(): a function whose calls are told of afterwards, where they blocked."""
    cause = _native.CAUSE_CODES[_CAUSE]

    def make(original: Callable) -> Callable:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not _state.on:
                return original(*args, **kwargs)
            start = _native.now_ns()
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                leave_traceback(error)
                raise
            finally:
                end = _native.now_ns()
                if end - start >= _BLOCKED_NS:
                    _native.annotate(name, cause, start, end)
        return wrapper

    return make


def install() -> Callable[[], None]:
    removers: List[Callable[[], None]] = []

    def imported(module: Any) -> None:
        for name in ("barrier", "monitored_barrier"):
            if hasattr(module, name):
                removers.append(replace(module, name, in_range(name, _CAUSE)))
        # The package hands the functions on under its own name.
        import torch.distributed as package
        for name in ("barrier", "monitored_barrier"):
            if hasattr(package, name) and getattr(package, name) is not getattr(module, name, None):
                removers.append(replace(package, name, in_range(name, _CAUSE)))
        works = getattr(module, "Work", None)
        if works is not None:
            removers.append(replace(works, "wait", _timed(b"work.wait")))
        store = getattr(module, "Store", None)
        for name in ("get", "wait"):
            if store is not None and hasattr(store, name):
                removers.append(replace(store, name, in_range(f"store.{name}", _CAUSE)))

    when_imported("torch.distributed.distributed_c10d", imported)
    return all_of(removers)
