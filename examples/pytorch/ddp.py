# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training, one process for each GPU.

    gpudiag run -- torchrun --nproc-per-node 2 ddp.py
"""

import os

import torch
import torch.distributed as dist
from common import (Troubles, batches_on, log_loss, loss_of, make_dataset, make_loader, make_model, parse_options,
                    save_checkpoint)
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def main() -> None:
    options = parse_options(__doc__)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    model = DistributedDataParallel(make_model(options).to(device), device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sampler = DistributedSampler(make_dataset(options, batches=1000))
    batches = batches_on(device, make_loader(options, sampler))
    troubles = Troubles(options, dist.get_rank())

    for step in range(options.steps):
        inputs, targets = next(batches)
        loss = loss_of(model, inputs, targets)
        troubles.after_forward(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            log_loss(options, step, loss)
        troubles.after_step(step, lambda path: save_checkpoint(path, model.module, optimizer))

    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
