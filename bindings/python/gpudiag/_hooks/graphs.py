# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs: the replay of a graph that holds an optimizer step ends an iteration."""

from __future__ import annotations

import weakref
from typing import Any, Callable, List, Optional

from .. import _state
from .._loop import loop
from ._wrap import all_of, leave_traceback, replace

capturing: Optional[Any] = None  # the graph that is being captured
_steps: "weakref.WeakKeyDictionary[Any, List[Any]]" = weakref.WeakKeyDictionary()  # of a graph's optimizers


def captures_step(optimizer: Any) -> bool:
    """Called at an optimizer step: whether it is being captured rather than done."""
    if capturing is None:
        return False
    _steps.setdefault(capturing, []).append(weakref.ref(optimizer))
    return True


def _begin(original: Callable) -> Callable:
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        global capturing
        capturing = self
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            capturing = None
            leave_traceback(error)
            raise

    return capture_begin


def _end(original: Callable) -> Callable:
    def capture_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        global capturing
        capturing = None
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            leave_traceback(error)
            raise

    return capture_end


def _replay(original: Callable) -> Callable:
    def replay(self: Any) -> Any:
        try:
            result = original(self)
        except BaseException as error:
            leave_traceback(error)
            raise
        if _state.on:
            for optimizer in _steps.get(self, ()):
                # The graph stands in for an optimizer that is gone.
                loop.optimizer_stepped(optimizer() or self)
        return result

    return replay


def install() -> Optional[Callable[[], None]]:
    import torch
    graph = getattr(torch.cuda, "CUDAGraph", None)
    if graph is None or not isinstance(graph, type):
        return None
    return all_of([replace(graph, "capture_begin", _begin), replace(graph, "capture_end", _end),
                   replace(graph, "replay", _replay)])
