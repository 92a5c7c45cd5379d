# SPDX-License-Identifier: Apache-2.0
"""Python's garbage collection."""

from __future__ import annotations

import gc
from typing import Any, Callable, Dict

from .. import _native, _state

# A young generation takes microseconds and comes often; it is not worth two clock reads and a record.
_WORTH_TELLING_NS = 50_000
_started_ns = 0


def _collecting(phase: str, info: Dict[str, Any]) -> None:
    global _started_ns
    if not _state.on:
        return
    if phase == "start":
        _started_ns = _native.now_ns()
        return
    ended, started, _started_ns = _native.now_ns(), _started_ns, 0
    if started and ended - started >= _WORTH_TELLING_NS:
        _native.annotate(b"gc generation %d" % info["generation"], 0, started, ended)


def install() -> Callable[[], None]:
    gc.callbacks.append(_collecting)

    def remove() -> None:
        if _collecting in gc.callbacks:
            gc.callbacks.remove(_collecting)

    return remove
