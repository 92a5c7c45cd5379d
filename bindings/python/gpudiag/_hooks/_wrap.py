# SPDX-License-Identifier: Apache-2.0
"""Wrapping of functions and methods, and waiting for modules that are imported later."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import inspect
import sys
import threading
from typing import Any, Callable, Dict, List, Optional

from .. import _native, _state


# In the file name of a frame, what has `warnings` pass it over when it counts `stacklevel`: warnings of
# the function behind our wrapper name, and are filtered by, the line of the script as without us.
_NO_STACK_LEVEL = "importlib _bootstrap"


def replace(owner: Any, name: str, make: Callable[[Callable], Callable]) -> Callable[[], None]:
    """Puts ``make(original)`` in the place of ``owner.name``; returns what puts it back.

    A function of a module is replaced in the module that defines it as well, where pickle looks for it.
    Somebody else may have wrapped ours meanwhile: then theirs stays, and ours calls through.
    """
    inherited = name not in vars(owner)
    original = getattr(owner, name)
    made = make(original)
    made.__code__ = made.__code__.replace(co_filename=f"{made.__code__.co_filename} ({_NO_STACK_LEVEL})")
    wrapper = functools.wraps(original)(made)
    if not hasattr(original, "__wrapped__"):  # else getfullargspec() gives the outermost one's already
        try:
            wrapper.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
        except (TypeError, ValueError):
            pass
    owners = [owner]
    home = sys.modules.get(getattr(original, "__module__", None) or "")
    if inspect.ismodule(owner) and home is not owner and getattr(home, name, None) is original:
        owners.append(home)
    for place in owners:
        setattr(place, name, wrapper)

    def put_back() -> None:
        for place in owners:
            if vars(place).get(name) is not wrapper:
                continue
            if inherited:
                delattr(place, name)
            else:
                setattr(place, name, original)

    return put_back


def leave_traceback(error: BaseException) -> None:
    """Takes the caller's frame out of the traceback of `error`, which it is about to ``raise`` again: the
    job's traceback is as without us. From Python 3.11 on; before, ``raise`` puts the frame back."""
    traceback = error.__traceback__
    if traceback is not None and traceback.tb_frame is sys._getframe(1):
        error.__traceback__ = traceback.tb_next


def in_range(name: str, cause: Optional[str] = None) -> Callable[[Callable], Callable]:
    """For replace(): a function that runs inside a range."""
    label, code = name.encode(), _native.CAUSE_CODES[cause] if cause else 0

    def make(original: Callable) -> Callable:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            ranged = _state.on
            if ranged:
                _native.range_push(label, code)
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                leave_traceback(error)
                raise
            finally:
                if ranged:
                    _native.range_pop()
        return wrapper

    return make


def all_of(removers: List[Callable[[], None]]) -> Callable[[], None]:
    def remove() -> None:
        while removers:
            removers.pop()()
    return remove


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls functions when a module has been imported. Costs other imports one look into a dict."""

    def __init__(self) -> None:
        self.waiting: Dict[str, List[Callable[[Any], None]]] = {}
        self._searching = threading.local()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.waiting or getattr(self._searching, "name", None) == name:
            return None
        self._searching.name = name
        try:
            spec = importlib.util.find_spec(name)
        except Exception:
            return None
        finally:
            self._searching.name = None
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            try:
                execute(module)
            except BaseException as error:
                leave_traceback(error)
                raise
            self.imported(name, module)

        try:
            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        except AttributeError:
            return None
        return spec

    def imported(self, name: str, module: Any) -> None:
        for call in self.waiting.pop(name, []):
            _call(call, name, module)


def _call(call: Callable[[Any], None], name: str, module: Any) -> None:
    try:
        call(module)
    except Exception as error:
        _native.say(f"torch: no hook for {name}: {error!r}")


_finder = _AfterImport()


def when_imported(name: str, call: Callable[[Any], None]) -> None:
    """Calls ``call(module)`` now if the module is there already, else when it is imported."""
    module = sys.modules.get(name)
    if module is not None:
        _call(call, name, module)
        return
    _finder.waiting.setdefault(name, []).append(call)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def forget_imports() -> None:
    """Nothing is waited for any more."""
    _finder.waiting.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
