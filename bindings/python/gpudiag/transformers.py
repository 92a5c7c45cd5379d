# SPDX-License-Identifier: Apache-2.0
"""A callback for the Trainer of Hugging Face transformers: the ledger's shares in its logs::

    gpudiag.transformers.GpudiagCallback.add_to(trainer)

They go where the trainer's logs go: wandb, TensorBoard, the console.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from transformers import TrainerCallback

from . import torch as _gpudiag
from ._shares import shares

__all__ = ["GpudiagCallback"]


class GpudiagCallback(TrainerCallback):
    """Adds the latest closed iteration to each entry of the log: ``gpudiag/compute``, ``gpudiag/idle``,
    ``gpudiag/idle_data_loading`` …, shares of wall time from 0 to 1, and ``gpudiag/wall_ms``.

    It must come before the callbacks that write logs, which `Trainer.add_callback()` does not do:
    use add_to().
    """

    @classmethod
    def add_to(cls, trainer: Any) -> "GpudiagCallback":
        """Puts one in front of the trainer's callbacks, and returns it."""
        callback = cls()
        trainer.callback_handler.callbacks.insert(0, callback)
        return callback

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        _gpudiag.start()

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **_: Any) -> None:
        iteration = _gpudiag.last()
        if iteration is None or logs is None or "loss" not in logs:
            return
        found = shares(iteration)
        logs.update(found)
        if state is not None and getattr(state, "log_history", None):
            state.log_history[-1].update(found)
