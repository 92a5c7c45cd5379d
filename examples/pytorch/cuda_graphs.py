# SPDX-License-Identifier: Apache-2.0
"""A whole training step as one CUDA graph: one launch instead of hundreds.

    gpudiag run -- python cuda_graphs.py
"""

import torch
from common import Troubles, batches_on, log_loss, loss_of, make_loader, make_model, parse_options, save_checkpoint


def main() -> None:
    options = parse_options(__doc__)
    device = torch.device("cuda")
    model = make_model(options).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    batches = batches_on(device, make_loader(options))
    troubles = Troubles(options)
    inputs, targets = next(batches)  # the graph always reads these two

    def train_step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, inputs, targets)
        loss.backward()
        optimizer.step()
        return loss

    warm_up = torch.cuda.Stream()
    warm_up.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm_up):
        for _ in range(3):
            train_step()
    torch.cuda.current_stream().wait_stream(warm_up)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train_step()

    for step in range(options.steps):
        for place, values in zip((inputs, targets), next(batches)):
            place.copy_(values)
        graph.replay()
        troubles.after_forward(loss)  # after all that the graph holds, here
        log_loss(options, step, loss)
        troubles.after_step(step, lambda path: save_checkpoint(path, model, optimizer))

    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
