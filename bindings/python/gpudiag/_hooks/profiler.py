# SPDX-License-Identifier: Apache-2.0
"""torch.profiler: from before it takes CUPTI until it has let go of it, gpudiag stands aside.

All of PyTorch's ways to profile (torch.profiler.profile and its schedules, torch.autograd.profiler)
go through three functions, of which the first is called at the warm-up already. A session without
CUDA among its activities leaves CUPTI alone, and us too.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from typing import Any, Callable, List, Optional

from .. import _native
from ._wrap import leave_traceback, replace

_WHO = b"torch.profiler"
_lock = threading.Lock()
_aside = False
_put_back: List[Callable[[], None]] = []
_removed = False


def _needs_cupti(activities: Any) -> bool:
    return any(getattr(activity, "name", "") == "CUDA" for activity in activities or ())


def _stand_aside() -> None:
    global _aside
    with _lock:
        if _aside:
            return
        _aside = True
    _native.stand_aside(_WHO)


def _resume() -> None:
    global _aside
    with _lock:
        if not _aside:
            return
        _aside = False
    _native.resume()
    if _removed:
        _take_out()


def _await_teardown() -> None:
    """With TEARDOWN_CUPTI=1 PyTorch calls cuptiFinalize from within the process's next CUDA call, and
    no other call of CUPTI should meet that one: so the next CUDA calls are made here, over 0.1 s."""
    import torch
    if os.environ.get("TEARDOWN_CUPTI") != "1" or not torch.cuda.is_initialized():
        return
    if torch.cuda.is_current_stream_capturing():
        return
    stream = torch.cuda.current_stream()
    for _ in range(20):
        stream.query()
        time.sleep(0.005)


def _begins(original: Callable) -> Callable:
    def begin(config: Any, activities: Any, *args: Any, **kwargs: Any) -> Any:
        ours = _needs_cupti(activities)
        if ours:
            _stand_aside()
        try:
            return original(config, activities, *args, **kwargs)
        except BaseException as error:
            if ours:
                _resume()
            leave_traceback(error)
            raise

    return begin


def _ends(original: Callable) -> Callable:
    def end(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            leave_traceback(error)
            raise
        finally:
            if _aside:
                _await_teardown()
                _resume()

    return end


def _open_session() -> Optional[Any]:
    """A session with CUDA that began before anything of ours was here, its warm-up included."""
    import torch
    from torch.autograd import profiler
    if not (getattr(profiler, "_is_profiler_enabled", False) or torch.cuda.is_initialized()):
        return None
    for thing in gc.get_referrers(profiler.profile):
        if isinstance(thing, profiler.profile) and getattr(thing, "entered", False):
            if getattr(thing, "kineto_results", None) is None and _needs_cupti(getattr(thing, "kineto_activities", ())):
                return thing
    return None


def notice_open() -> None:
    """To be called before a session of ours starts."""
    if not _aside and _open_session() is not None:
        _stand_aside()


def _take_out() -> None:
    while _put_back:
        _put_back.pop()()


def install() -> Callable[[], None]:
    global _removed
    from torch.autograd import profiler
    _removed = False
    if not _put_back:
        for name in ("_prepare_profiler", "_enable_profiler"):
            if hasattr(profiler, name):
                _put_back.append(replace(profiler, name, _begins))
        _put_back.append(replace(profiler, "_disable_profiler", _ends))
    notice_open()

    def remove() -> None:
        # A session that is open would never be seen to end, and CUPTI must not be taken from it now.
        # Nor from an injected session, which runs on: a profiler must still be made way for.
        global _removed
        if _native.active():
            return
        _removed = True
        if not _aside:
            _take_out()

    return remove
