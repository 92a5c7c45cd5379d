# SPDX-License-Identifier: Apache-2.0
"""The caching allocator: torch.cuda.empty_cache(), which makes the next iterations allocate anew.

Its retries (free everything, ask again) need no hook: the cudaFree calls stand in CUPTI's records.
"""

from __future__ import annotations

from typing import Callable, List

from ._wrap import all_of, in_range, replace


def install() -> Callable[[], None]:
    import torch
    make = in_range("torch.cuda.empty_cache", "allocation")
    removers: List[Callable[[], None]] = [replace(torch.cuda, "empty_cache", make)]
    if hasattr(torch.cuda.memory, "empty_cache"):
        removers.append(replace(torch.cuda.memory, "empty_cache", make))
    return all_of(removers)
