# SPDX-License-Identifier: Apache-2.0
"""Wrapping of functions and methods, and waiting for modules that are imported later."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import sys
import threading
from typing import Any, Callable, Dict, List, Optional

from .. import _native, _state


def replace(owner: Any, name: str, make: Callable[[Callable], Callable]) -> Callable[[], None]:
    """Puts ``make(original)`` in the place of ``owner.name``; returns what puts it back.

    Somebody else may have wrapped ours meanwhile: then theirs stays, and ours calls through.
    """
    inherited = name not in vars(owner)
    original = getattr(owner, name)
    wrapper = functools.wraps(original)(make(original))
    setattr(owner, name, wrapper)

    def put_back() -> None:
        if vars(owner).get(name) is not wrapper:
            return
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)

    return put_back


def in_range(name: str, cause: Optional[str] = None) -> Callable[[Callable], Callable]:
    """For replace(): a function that runs inside a range."""
    label, code = name.encode(), _native.CAUSE_CODES[cause] if cause else 0

    def make(original: Callable) -> Callable:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not _state.on:
                return original(*args, **kwargs)
            _native.range_push(label, code)
            try:
                return original(*args, **kwargs)
            finally:
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
            execute(module)
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
