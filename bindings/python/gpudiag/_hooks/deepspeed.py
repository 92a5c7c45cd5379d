# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed: one iteration for each step of the engine's optimizer, which may step its inner one
several times (ZeRO: once a parameter group)."""

from __future__ import annotations

from typing import Any, Callable, List

from .. import _state
from .._loop import loop
from ._wrap import all_of, leave_traceback, replace, when_imported


def _engine_step(original: Callable) -> Callable:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _state.on:
            return original(self, *args, **kwargs)
        boundary = bool(self.is_gradient_accumulation_boundary())
        loop.held = True
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            leave_traceback(error)
            raise
        finally:
            loop.held = False
            if boundary:
                loop.optimizer_stepped(self)

    return step


def install() -> Callable[[], None]:
    removers: List[Callable[[], None]] = []

    def imported(module: Any) -> None:
        engine = getattr(module, "DeepSpeedEngine", None)
        if engine is not None and hasattr(engine, "is_gradient_accumulation_boundary"):
            removers.append(replace(engine, "step", _engine_step))

    when_imported("deepspeed.runtime.engine", imported)
    return all_of(removers)
