# SPDX-License-Identifier: Apache-2.0
"""torch.compile: the time in which a frame is compiled, here and again at a recompilation."""

from __future__ import annotations

from typing import Any, Callable, List

from ._wrap import all_of, in_range, replace, when_imported


def install() -> Callable[[], None]:
    removers: List[Callable[[], None]] = []

    def imported(module: Any) -> None:
        # Looked up at each call by the code that Dynamo's frame hook runs.
        for name in ("_compile",):
            if hasattr(module, name):
                removers.append(replace(module, name, in_range("torch.compile")))

    when_imported("torch._dynamo.convert_frame", imported)
    return all_of(removers)
