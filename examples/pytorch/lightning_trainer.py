# SPDX-License-Identifier: Apache-2.0
"""The same job by Lightning's Trainer.

    gpudiag run -- python lightning_trainer.py
"""

import sys
from typing import Any

import torch
from common import Troubles, log_loss, loss_of, make_loader, make_model, parse_options

try:
    import lightning
except ImportError:
    sys.exit("lightning_trainer.py needs Lightning: pip install lightning")


class LanguageModel(lightning.LightningModule):
    def __init__(self, options: Any) -> None:
        super().__init__()
        self.options = options
        self.model = make_model(options)
        self.troubles = Troubles(options)

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        loss = loss_of(self.model, *batch)
        self.troubles.after_forward(loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)

    def on_train_batch_end(self, outputs: Any, batch: Any, index: int) -> None:
        log_loss(self.options, index, outputs["loss"])
        self.troubles.after_step(index, self.trainer.save_checkpoint)


def main() -> None:
    options = parse_options(__doc__)
    trainer = lightning.Trainer(max_steps=options.steps, accelerator="gpu", devices=1, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(LanguageModel(options), make_loader(options))


if __name__ == "__main__":
    main()
