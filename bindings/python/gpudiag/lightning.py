# SPDX-License-Identifier: Apache-2.0
"""A callback for Lightning: the ledger's shares among the trainer's own metrics::

    trainer = Trainer(callbacks=[gpudiag.lightning.GpudiagCallback()])
"""

from __future__ import annotations

import sys
from typing import Any, Dict

from . import torch as _gpudiag
from ._shares import shares

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

__all__ = ["GpudiagCallback"]


class GpudiagCallback(Callback):
    """Logs the latest closed iteration as ``gpudiag/compute``, ``gpudiag/idle``,
    ``gpudiag/idle_data_loading`` …, shares of wall time from 0 to 1, and ``gpudiag/wall_ms``.

    An iteration closes up to two seconds after it ended, so the numbers are of a step or some before.

    :param every: log at each `every`-th training batch; None: as often as the trainer logs
    :raises ValueError: where `every` is not positive
    """

    def __init__(self, every: "int | None" = None) -> None:
        super().__init__()
        if every is not None and every < 1:
            raise ValueError(f"GpudiagCallback: every must be positive, and is {every}")
        self._every = every
        self._logged: Any = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        _gpudiag.start()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        every = self._every or max(1, int(getattr(trainer, "log_every_n_steps", 1) or 1))
        if batch_idx % every != 0:
            return
        iteration = _gpudiag.last()
        if iteration is None or iteration["index"] == self._logged:
            return
        self._logged = iteration["index"]
        found: Dict[str, float] = shares(iteration)
        if found and trainer.loggers:
            for logger in trainer.loggers:
                logger.log_metrics(found, step=trainer.global_step)
