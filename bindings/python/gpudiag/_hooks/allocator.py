# SPDX-License-Identifier: Apache-2.0
"""The caching allocator: torch.cuda.empty_cache(), which makes the next iterations allocate anew.

Its retries (free everything, ask again) need no hook: the cudaFree calls stand in CUPTI's records.
"""

from __future__ import annotations

from typing import Callable

from ._wrap import in_range, replace


def install() -> Callable[[], None]:
    import torch
    return replace(torch.cuda, "empty_cache", in_range("torch.cuda.empty_cache", "allocation"))
