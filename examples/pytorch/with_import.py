# SPDX-License-Identifier: Apache-2.0
"""single.py with gpudiag in the script: one import would do; the rest shows what else there is.

    python with_import.py
"""

import gpudiag.torch
import torch
from common import Troubles, batches_on, log_loss, loss_of, make_loader, make_model, parse_options, save_checkpoint


def main() -> None:
    options = parse_options(__doc__)
    device = torch.device("cuda")
    model = make_model(options).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = batches_on(device, make_loader(options))
    troubles = Troubles(options)

    idle = []  # share of each iteration in which the GPU was idle
    gpudiag.torch.on_iteration(lambda i: idle.append(i["idle_ns"] / i["wall_ns"]) if i["valid"] and i["wall_ns"] else 0)

    for step in range(options.steps):
        inputs, targets = next(batches)
        loss = loss_of(model, inputs, targets)
        with gpudiag.torch.range("metrics", cause="host"):  # a name for what stands between the passes
            troubles.after_forward(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log_loss(options, step, loss)
        troubles.after_step(step, lambda path: save_checkpoint(path, model, optimizer))
        gpudiag.torch.step(step)  # not needed: an optimizer step ends an iteration too

    torch.cuda.synchronize()
    gpudiag.torch.stop()  # so that the report has all iterations
    report = gpudiag.torch.report()
    if idle:
        print(f"gpudiag: {report['verdict']}; the GPU was idle for {100 * sum(idle) / len(idle):.1f} % of an iteration")


if __name__ == "__main__":
    main()
