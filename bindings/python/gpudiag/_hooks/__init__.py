# SPDX-License-Identifier: Apache-2.0
"""What gpudiag listens to in a Python training job, one file per subject.

Each module has ``install()``, which returns a function that takes the hook out again (or None).
A hook wraps: it keeps the name, signature and identity of what it wraps as far as Python allows, and
with ``_state.on`` False it calls through. A hook that fails to install is one line, and no more.
"""

from __future__ import annotations

import importlib
from typing import Callable, List, Optional

from .. import _native

NAMES = ("profiler", "dataloader", "loaders", "optimizer", "evaluation", "graphs", "checkpoint", "gc", "allocator",
         "compile", "distributed", "deepspeed")
_removers: List[Callable[[], None]] = []


def install() -> None:
    if _removers:
        return
    for name in NAMES:
        try:
            module = importlib.import_module("." + name, __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                _native.say(f"torch: no hook '{name}': {error}")
            continue
        except Exception as error:  # a torch of another time
            _native.say(f"torch: no hook '{name}': {error!r}")
            continue
        try:
            remove = module.install()
            if remove is not None:
                _removers.append(remove)
        except Exception as error:
            _native.say(f"torch: no hook '{name}': {error!r}")


def add(remover: Optional[Callable[[], None]]) -> None:
    """Of something that was installed beside the hooks."""
    if remover is not None:
        _removers.append(remover)


def remove() -> None:
    while _removers:
        try:
            _removers.pop()()
        except Exception as error:
            _native.say(f"torch: a hook could not be taken out: {error!r}")
