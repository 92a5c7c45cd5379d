# SPDX-License-Identifier: Apache-2.0
"""An optimizer step ends an iteration, and so does one that a GradScaler skips."""

from __future__ import annotations

from typing import Any, Callable, Tuple

from .. import _state
from .._loop import loop
from . import graphs
from ._wrap import all_of, leave_traceback, replace, when_imported


def _mark(optimizer: Any) -> None:
    if _state.on and (graphs.capturing is None or not graphs.captures_step(optimizer)):
        loop.optimizer_stepped(optimizer)


# What torch.compile calls between two graphs; it traces the rest of the hook. A constant for it.
_mark_untraced: Callable[[Any], None] = _mark
_own: Tuple[type, ...] = ()
_compiling: Callable[[], bool] = lambda: False


def _stepped(optimizer: Any, _args: Any, _kwargs: Any) -> None:
    if _compiling():
        # Steps of torch's own break the graph themselves, so that one more break does not matter. One of
        # the script's may be part of a whole graph, which must not fail for our sake: it has no mark.
        if isinstance(optimizer, _own):
            _mark_untraced(optimizer)
        return
    _mark(optimizer)


def _not_to_be_traced(dynamo: Any) -> None:
    global _mark_untraced
    _mark_untraced = dynamo.disable(_mark)


def _scaler_step(original: Callable) -> Callable:
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        before = loop.optimizer_steps
        try:
            result = original(self, optimizer, *args, **kwargs)
        except BaseException as error:
            leave_traceback(error)
            raise
        # Infinite gradients: the optimizer's own hook is not called, yet the iteration is over.
        if _state.on and self.is_enabled() and loop.optimizer_steps == before:
            loop.optimizer_stepped(optimizer)
        return result

    return step


def install() -> Callable[[], None]:
    global _own, _compiling
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook
    _own = tuple(thing for thing in vars(torch.optim).values()
                 if isinstance(thing, type) and issubclass(thing, torch.optim.Optimizer)
                 and thing is not torch.optim.Optimizer)
    if hasattr(getattr(torch, "compiler", None), "is_dynamo_compiling"):
        _compiling = torch.compiler.is_dynamo_compiling
        when_imported("torch._dynamo", _not_to_be_traced)
    removers = [register_optimizer_step_post_hook(_stepped).remove]
    try:
        from torch.amp.grad_scaler import GradScaler
        removers.append(replace(GradScaler, "step", _scaler_step))
    except ImportError:
        pass  # older: torch.cuda.amp's own class
    return all_of(removers)
