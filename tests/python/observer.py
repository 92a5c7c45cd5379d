# SPDX-License-Identifier: Apache-2.0
"""observer.py SCRIPT ARGUMENTS: runs a script and writes what on_iteration is told, a line each, to
$OBSERVED/<process>."""
import json
import os
import pathlib
import runpy
import sys
import time

import torch  # noqa: F401  (under `gpudiag run` its import makes gpudiag importable)
import gpudiag.torch


def main():
    sys.argv = sys.argv[1:]
    sys.path[0] = str(pathlib.Path(sys.argv[0]).parent)
    with open(os.path.join(os.environ["OBSERVED"], str(os.getpid())), "w", buffering=1) as file:
        gpudiag.torch.on_iteration(lambda one: print(json.dumps(one), file=file))
        runpy.run_path(sys.argv[0], run_name="__main__")
        time.sleep(2)  # an iteration closes so long after it ended
        gpudiag.torch.stop()


if __name__ == "__main__":
    main()
