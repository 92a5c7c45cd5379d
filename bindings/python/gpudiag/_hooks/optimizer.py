# SPDX-License-Identifier: Apache-2.0
"""An optimizer step ends an iteration, and so does one that a GradScaler skips."""

from __future__ import annotations

from typing import Any, Callable

from .. import _state
from .._loop import loop
from . import graphs
from ._wrap import all_of, replace


def _stepped(optimizer: Any, _args: Any, _kwargs: Any) -> None:
    if _state.on and not graphs.captures_step(optimizer):
        loop.optimizer_stepped(optimizer)


def _scaler_step(original: Callable) -> Callable:
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        before = loop.optimizer_steps
        result = original(self, optimizer, *args, **kwargs)
        # Infinite gradients: the optimizer's own hook is not called, yet the iteration is over.
        if _state.on and self.is_enabled() and loop.optimizer_steps == before:
            loop.optimizer_stepped(optimizer)
        return result

    return step


def install() -> Callable[[], None]:
    from torch.optim.optimizer import register_optimizer_step_post_hook
    removers = [register_optimizer_step_post_hook(_stepped).remove]
    try:
        from torch.amp.grad_scaler import GradScaler
        removers.append(replace(GradScaler, "step", _scaler_step))
    except ImportError:
        pass  # older: torch.cuda.amp's own class
    return all_of(removers)
