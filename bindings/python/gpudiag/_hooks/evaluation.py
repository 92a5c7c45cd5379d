# SPDX-License-Identifier: Apache-2.0
"""Evaluation kept apart from training: model.eval() and model.train(), gradients switched off."""

from __future__ import annotations

import threading
from typing import Any, Callable

from .. import _state
from .._loop import loop
from ._wrap import all_of, leave_traceback, replace

_inside = threading.local()  # train() calls itself for the children: the outermost call counts


def _train(original: Callable) -> Callable:
    def train(self: Any, mode: bool = True) -> Any:
        outermost = _state.on and not getattr(_inside, "train", False)
        if outermost:
            _inside.train = True
        try:
            result = original(self, mode)
        except BaseException as error:
            leave_traceback(error)
            raise
        finally:
            if outermost:
                _inside.train = False
        if outermost:
            loop.module_mode(self, bool(mode))
        return result

    return train


def install() -> Callable[[], None]:
    import torch
    loop.gradients_on = torch.is_grad_enabled
    return all_of([replace(torch.nn.Module, "train", _train)])
