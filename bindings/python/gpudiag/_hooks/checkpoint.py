# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: torch.save, torch.distributed.checkpoint, and what trainers call for it."""

from __future__ import annotations

from typing import Any, Callable, List

from ._wrap import all_of, in_range, replace, when_imported

# Module, class or function of it, method; where a trainer has more around torch.save than that call.
_LATER = (
    ("torch.distributed.checkpoint", None, "save"),
    ("torch.distributed.checkpoint", None, "async_save"),
    ("accelerate.accelerator", "Accelerator", "save_state"),
    ("accelerate.accelerator", "Accelerator", "save_model"),
    ("lightning.pytorch.trainer.trainer", "Trainer", "save_checkpoint"),
    ("pytorch_lightning.trainer.trainer", "Trainer", "save_checkpoint"),
    ("transformers.trainer", "Trainer", "_save_checkpoint"),
    ("deepspeed.runtime.engine", "DeepSpeedEngine", "save_checkpoint"),
)


def install() -> Callable[[], None]:
    import torch
    removers: List[Callable[[], None]] = [replace(torch, "save", in_range("torch.save", "checkpoint"))]

    def wrap(owner: str, name: str) -> Callable[[Any], None]:
        def imported(module: Any) -> None:
            place = getattr(module, owner, None) if owner else module
            if place is not None and hasattr(place, name):
                removers.append(replace(place, name, in_range(f"{owner or 'checkpoint'}.{name}", "checkpoint")))
        return imported

    for module, owner, name in _LATER:
        when_imported(module, wrap(owner or "", name))
    return all_of(removers)
