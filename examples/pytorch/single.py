# SPDX-License-Identifier: Apache-2.0
"""Training on one GPU.

    gpudiag run -- python single.py
"""

import torch
from common import Troubles, batches_on, log_loss, loss_of, make_loader, make_model, parse_options, save_checkpoint


def main() -> None:
    options = parse_options(__doc__)
    device = torch.device("cuda")
    model = make_model(options).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = batches_on(device, make_loader(options))
    troubles = Troubles(options)

    for step in range(options.steps):
        inputs, targets = next(batches)
        loss = loss_of(model, inputs, targets)
        troubles.after_forward(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log_loss(options, step, loss)
        troubles.after_step(step, lambda path: save_checkpoint(path, model, optimizer))

    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
