# SPDX-License-Identifier: Apache-2.0
"""The same job by the Trainer of Hugging Face transformers.

    gpudiag run -- python hf_trainer.py
"""

import sys
from typing import Any, Dict, List

import torch
from common import Troubles, loss_of, make_dataset, make_model, parse_options
from torch import nn

try:
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
except ImportError as error:
    sys.exit(f"hf_trainer.py needs transformers and accelerate: pip install transformers accelerate ({error})")


class LanguageModel(nn.Module):
    def __init__(self, options: Any, troubles: Troubles) -> None:
        super().__init__()
        self.model = make_model(options)
        self.troubles = troubles

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> Dict[str, torch.Tensor]:
        loss = loss_of(self.model, input_ids, labels)
        self.troubles.after_forward(loss)
        return {"loss": loss}


class Habits(TrainerCallback):
    def __init__(self, troubles: Troubles) -> None:
        self.troubles = troubles

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.troubles.after_step(state.global_step - 1, lambda path: None)  # the Trainer saves by itself

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if "loss" in logs:
            print(f"step {state.global_step} loss {float(logs['loss']):.4f}", flush=True)


def collate(samples: List[Any]) -> Dict[str, torch.Tensor]:
    inputs, targets = zip(*samples)
    return {"input_ids": torch.stack(inputs), "labels": torch.stack(targets)}


def main() -> None:
    options = parse_options(__doc__)
    troubles = Troubles(options)
    arguments = TrainingArguments(
        output_dir=str(options.folder), max_steps=options.steps, per_device_train_batch_size=options.batch,
        dataloader_num_workers=options.workers, dataloader_persistent_workers=options.workers > 0,
        logging_steps=options.log_every, report_to="none", disable_tqdm=True,
        save_strategy="steps" if options.checkpoint_every else "no", save_steps=options.checkpoint_every or 500,
        save_total_limit=1,
        # Otherwise the Trainer reads every loss to see whether it is finite: a sync in each step.
        logging_nan_inf_filter=False)
    trainer = Trainer(LanguageModel(options, troubles), arguments, data_collator=collate,
                      train_dataset=make_dataset(options, batches=1000), callbacks=[Habits(troubles)])
    trainer.remove_callback(PrinterCallback)
    trainer.train()


if __name__ == "__main__":
    main()
