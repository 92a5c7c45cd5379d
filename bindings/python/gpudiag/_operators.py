# SPDX-License-Identifier: Apache-2.0
"""libgpudiag_torch.so: ranges that libtorch gives without Python and the GIL.

record_function() scopes are always listened to, where the library is there and fits. Operators are
recorded for one iteration in ``SAMPLED`` if ``ops=True`` or ``GPUDIAG_OPS=on`` asks for them: a
callback on each of them, even an empty one, is dear for a host-bound job.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Optional

from . import _native

SAMPLED = 16

problem: Optional[str] = None
_library: Any = None


def wanted() -> bool:
    return os.environ.get("GPUDIAG_OPS", "").lower() in ("on", "1", "true")


def state() -> str:
    """"there", or why not."""
    return problem or ("there" if _library is not None else "not loaded: no hooks into PyTorch were set")


def _load(torch_version: str) -> None:
    global _library, problem
    if _library is not None or _native.path is None:
        return
    path = os.path.join(os.path.dirname(_native.path), "libgpudiag_torch.so")
    if not os.path.exists(path):
        problem = "not built: no PyTorch was there when gpudiag was"
        return
    try:
        library = ctypes.CDLL(path)
        library.gpudiag_torch_built_for.restype = ctypes.c_char_p
        built_for = library.gpudiag_torch_built_for().decode()
    except (OSError, AttributeError) as error:
        problem = f"does not fit this PyTorch: {error}"
        return
    if built_for.split("+")[0] != torch_version.split("+")[0]:
        problem = f"built for PyTorch {built_for}, and this is {torch_version}"
        return
    problem, _library = None, library


class _Sampler:
    """Switches operators on for one iteration in `SAMPLED`."""

    def __init__(self) -> None:
        self._iteration = 0

    def __call__(self) -> None:
        phase = self._iteration % SAMPLED
        self._iteration += 1
        if phase < 2:
            _library.gpudiag_torch_operators(1 - phase)


def install(torch_version: str, operators: bool) -> Optional[Callable[[], None]]:
    """Begins to listen; returns what ends it."""
    from ._loop import loop
    _load(torch_version)
    if _library is None:
        if operators:
            _native.say(f"torch: no ranges of operators: {problem}")
        return None
    pointers = _native.range_pointers()
    if pointers is None or not _library.gpudiag_torch_listen(*pointers):
        return None
    if operators:
        loop.at_mark = _Sampler()

    def remove() -> None:
        loop.at_mark = None
        _library.gpudiag_torch_leave()

    return remove
