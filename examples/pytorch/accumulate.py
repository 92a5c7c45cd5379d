# SPDX-License-Identifier: Apache-2.0
"""Gradient accumulation: several batches for each optimizer step, which are one iteration.

    gpudiag run -- python accumulate.py
"""

import torch
from common import Troubles, batches_on, log_loss, loss_of, make_loader, make_model, parse_options, save_checkpoint

BATCHES_A_STEP = 4


def main() -> None:
    options = parse_options(__doc__)
    device = torch.device("cuda")
    model = make_model(options).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = batches_on(device, make_loader(options))
    troubles = Troubles(options)

    for step in range(options.steps):
        optimizer.zero_grad()
        for _ in range(BATCHES_A_STEP):
            inputs, targets = next(batches)
            loss = loss_of(model, inputs, targets) / BATCHES_A_STEP
            troubles.after_forward(loss)
            loss.backward()
        optimizer.step()
        log_loss(options, step, loss)
        troubles.after_step(step, lambda path: save_checkpoint(path, model, optimizer))

    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
