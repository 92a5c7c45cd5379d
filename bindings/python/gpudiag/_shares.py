# SPDX-License-Identifier: Apache-2.0
"""An iteration as metrics for a logger."""

from __future__ import annotations

from typing import Any, Dict


def shares(iteration: Dict[str, Any]) -> Dict[str, float]:
    """Shares of wall time from 0 to 1, causes of idle time only where there is any. Empty for an
    iteration that is in no sum."""
    wall = iteration["wall_ns"]
    if not iteration["valid"] or wall <= 0:
        return {}
    found = {"gpudiag/wall_ms": wall / 1e6}
    for part in ("compute", "communication", "copy", "idle"):
        found[f"gpudiag/{part}"] = iteration[f"{part}_ns"] / wall
    for cause, time in iteration["idle"].items():
        if time:
            found[f"gpudiag/idle_{cause}"] = time / wall
    return found
